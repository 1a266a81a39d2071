# SPDX-License-Identifier: Apache-2.0
# What the probe refuses is the user's own mistake: one error and the name of the help, and nothing of the tool's insides.
told_once() { # MESSAGE ARGUMENT...
  message=$1
  shift
  expect 2 "$synccount" --device sim --layers 1 "$@"
  [ ! -s out ] || fail "something on standard output"
  [ "$(sed -n 1p err | cut -c 1-11)" = "synccount: " ] || fail "the error does not begin with the tool's name"
  [ "$(sed -n 1p err | grep -cF -- "$message")" = 1 ] || fail "no '$message' in the first line"
  [ "$(sed -n 2p err)" = "Try 'synccount help'." ] || fail "the second line does not name the help"
  [ "$(grep -c '' err)" = 2 ] || fail "$(grep -c '' err) lines instead of 2: $*"
  lacks err "trace in"
  lacks err "synccount-probe"
}
# The probe finds these: the first two when it is traced already, the others before.
multiples="--hidden and --intermediate must be multiples of 16"
told_once "$multiples" --variants fused-nvfp4 --hidden 24
told_once "$multiples" --variants fused-nvfp4 --hidden 24 --keep-traces kept
told_once "'1025' is not a list of numbers from 1 to 1024" --experts 1025
told_once "is not a number from 1 to 64" --experts 128 --top-k 65
# These never reach it.
told_once "top-k 3 is more than 2 experts" --experts 2 --top-k 3
told_once "'0' is not a list of numbers" --tokens 0

# Whatever else the probe says still stands before the error. Another program's status 2 may mean anything.
# The shell that plays the probe here has leaks of its own.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
SYNCCOUNT_PROBE=$work/probe
export ASAN_OPTIONS SYNCCOUNT_PROBE
probe() { # STATUS LINE...
  status=$1
  shift
  { echo '#!/bin/sh'; printf "echo '%s' >&2\n" "$@"; echo "exit $status"; } >probe
  chmod +x probe
}
says() { # LINE...: all of standard error.
  printf '%s\n' "$@" >wanted
  equal wanted err
}
probe 2 "a library warns" "synccount: CUPTI is odd" "synccount-probe: it will not do" "synccount: trace in /x/y.sctrace; see it"
expect 2 "$synccount" $small --variants masked
says "synccount: probe: a library warns" "synccount: probe: synccount: CUPTI is odd" "synccount: it will not do" \
  "Try 'synccount help'."
probe 2 "probe: syntax error"
expect 2 "$synccount" $small --variants masked
has err "exit status 2): probe: syntax error"
probe 3 "first" "synccount-probe: cudaMalloc: out of memory"
expect 3 "$synccount" $small --experts 4
[ "$(grep -c '' err)" = 2 ] || fail "not 2 lines"
has err "synccount: probe: first"
has err "exit status 3): cudaMalloc: out of memory"
{ echo '#!/bin/sh'; echo 'echo "synccount-probe: about to end" >&2'; echo 'kill -KILL $$'; } >probe
expect 3 "$synccount" $small --experts 4
has err "synccount: probe: synccount-probe: about to end"
has err "signal 9"
