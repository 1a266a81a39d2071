# SPDX-License-Identifier: Apache-2.0
probe() {
# The shell that plays the probe here has leaks of its own.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS
  { echo '#!/bin/sh'; cat; } >probe
  chmod +x probe
}
SYNCCOUNT_PROBE=$work/probe
export SYNCCOUNT_PROBE

probe <<'P'
echo "synccount-probe: cudaMalloc: out of memory: use a smaller shape" >&2
exit 3
P
expect 3 "$synccount" $small --experts 4
has err "cudaMalloc: out of memory: use a smaller shape"
has err "exit status 3"

probe <<'P'
kill -KILL $$
P
expect 3 "$synccount" $small --experts 4
has err "signal 9"

probe <<'P'
exit 0
P
expect 3 "$synccount" $small --experts 4
has err "without its document"

probe <<'P'
while [ $# -gt 0 ]; do [ "$1" = --output ] && echo '{"schema": "synccount/probe/1", "runs": [{}]}' >"$2"; shift; done
P
expect 3 "$synccount" $small --experts 4
has err "left no trace"

# An executable that is not there.
SYNCCOUNT_PROBE=$work/nowhere
expect 3 "$synccount" $small --experts 4
has err "cannot start"
