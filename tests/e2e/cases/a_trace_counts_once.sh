# SPDX-License-Identifier: Apache-2.0
# The same trace twice, or a copy of it, is one process, and is said to be; other traces of the same program are not.
expect 0 under --keep-traces one -- "$programs/stepping" 3
expect 0 under --keep-traces two -- "$programs/stepping" 3
mkdir alone more
cp one/*.sctrace alone/
cp one/*.sctrace more/copy.sctrace
trace=$(ls alone/*.sctrace)
other=$(ls two/*.sctrace)
expect 0 "$synccount" report --format json "$trace"
syncs=$(jq '.processes[0].syncs.total' out)
[ "$syncs" -gt 0 ] || fail "nothing to count"

once() {
  expect 0 "$synccount" report --format json "$@"
  json out '[.processes[].syncs.total]' "[$syncs]"
  json out '[.warnings[] | select(contains("given more than once") or contains("is the same trace as"))] | length' 1
}
once "$trace" "$trace"
once "$trace" "./$trace"
once "$trace" more/copy.sctrace
has out "'more/copy.sctrace' is left out: it is the same trace as '$trace', of process"
once alone "$trace"
once alone more
once alone alone/
once one one/ # with its session
once one/*.sctrace one/*.sctrace
expect 0 "$synccount" check --max-syncs "$syncs" "$trace" more/copy.sctrace
has out "is left out: it is the same trace as"
# A new run is another process, and a diff compares a trace with itself.
expect 0 "$synccount" report --format json "$trace" "$other"
json out '[(.processes | length), ([.warnings[] | select(contains("left out"))] | length)]' '[2,0]'
expect 0 "$synccount" diff --fail-on-increase "$trace" "$trace"
# So are reports and traces of other tools.
nsys=$source/tests/import/data/mfu_2gpu.sqlite
expect 0 "$synccount" report --format json "$nsys" "$source/reports/h200.json" "$nsys" "$source/reports/h200.json"
json out '[(.processes | length), (.runs | length), ([.warnings[] | select(contains("more than once"))] | length)]' '[2,9,2]'
