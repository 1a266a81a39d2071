# SPDX-License-Identifier: Apache-2.0
# When the program has ended, the probe takes the ruler, untraced. A program on stand-in libraries that are no simulation, and a
# stand-in probe: what is looked at is what becomes of its document.
[ -e "$build/tests/tracer_victim" ] || exit 77
cat >probe <<'SCRIPT'
#!/bin/sh
[ -z "${LD_PRELOAD:-}${CUDA_INJECTION64_PATH:-}" ] || { echo "traced: $LD_PRELOAD" >&2; exit 1; }
echo "$*" >"$PROBE_SAW"
while [ "$1" != --output ]; do shift; done
[ -z "${PROBE_FAILS:-}" ] || { echo "no device is free" >&2; exit 3; }
row() {
  printf '{"method": "%s", "block_sizes": [2, 2], "samples_us": [%s, %s, %s, %s]}' "$1" "$2" "$2" "$2" "$2"
}
printf '{"schema": "synccount/probe/1", "version": "1", "pass": "ruler", "device": {"ordinal": 0, "name": "A GPU"},
 "ruler": [%s, %s], "runs": [], "controls": [], "skipped": [], "warnings": []}' "$(row launch+readback 0.001)" "$(row launch 0.0005)" >"$2"
SCRIPT
chmod +x probe
SYNCCOUNT_PROBE=$work/probe PROBE_SAW=$work/saw
export SYNCCOUNT_PROBE PROBE_SAW
traced() {
  env LD_LIBRARY_PATH="$build/tests/fake" "$synccount" run "$@" -- "$build/tests/tracer_victim" sync 20
}
expect 0 traced --keep-traces kept --format json -o report.json
json report.json '.processes[0].syncs.total' 20
json report.json '.round_trip.p50_us' 0.001
json report.json '[.ruler[].method]' '["launch+readback","launch"]'
json report.json '.device.name' '"A GPU"'
has saw "--pass ruler"
has saw "--samples 1200"
# the kept folder says the same
expect 0 "$synccount" report --format json kept
json out '.round_trip.p50_us' 0.001
expect 0 "$synccount" report kept
has out "round trip + rest"
has out "= 0.0 + "
# not wanted
rm saw
expect 0 traced --no-ruler --format json -o report.json
json report.json '.round_trip' null
[ ! -e saw ] || fail "the probe ran in spite of --no-ruler"
# a failure is a note
PROBE_FAILS=1
export PROBE_FAILS
expect 0 traced --format json -o report.json
json report.json '.processes[0].syncs.total' 20
json report.json '.round_trip' null
json report.json '[.warnings[] | select(contains("round trip was not measured") and contains("no device is free"))] | length' 1
# after a program that a signal ended
rm -f saw
unset PROBE_FAILS
expect 143 env LD_LIBRARY_PATH="$build/tests/fake" "$synccount" run --format json -o report.json -- sh -c '"$0" sync 5; kill -TERM $$' "$build/tests/tracer_victim"
[ ! -e saw ] || fail "the probe ran after a signal"
# the simulation has no round trip of its own to tell
expect 0 under --format json -o report.json -- "$programs/stepping" 2
[ ! -e saw ] || fail "the probe ran beside the simulation"
