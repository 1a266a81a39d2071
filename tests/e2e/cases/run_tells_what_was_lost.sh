# SPDX-License-Identifier: Apache-2.0
# A process may record 64 KiB: the rest is counted without details, and the program goes on.
expect 0 under --max-trace 64K --format json -o small.json -- "$programs/threads" 2 2000
lost=$(jq '.losses.records' small.json)
syncs=$(jq '.processes[0].syncs.total' small.json)
[ "$lost" -gt 0 ] || fail "nothing was lost"
[ "$syncs" -eq 4000 ] || fail "$syncs of 4000 syncs were counted"
json small.json '[.warnings[] | select(contains("totals are complete"))] | length' 1
expect 0 under --format json -o whole.json -- "$programs/threads" 2 2000
json whole.json '.losses.records' 0
json whole.json '.processes[0].syncs.total' 4000
for wrong in 0 lots 5x; do
  expect 2 under --max-trace $wrong -- true
done
