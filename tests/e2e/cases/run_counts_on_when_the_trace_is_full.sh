# SPDX-License-Identifier: Apache-2.0
# Without room for records the totals stay what they are, on every thread, and the report says what has no details.
totals='.processes[0].syncs | del(.wait_us, .api_calls, .without_detail)'

# same_totals NAME COMMAND...: the report of a run that was short of room against whole.json.
same_totals() {
  name=$1
  shift
  expect 0 "$@"
  [ "$(jq '.losses.records' "$name.json")" -gt 1000 ] || fail "$name: hardly anything was lost"
  jq -S "$totals" whole.json >whole.totals
  jq -S "$totals" "$name.json" >"$name.totals"
  equal whole.totals "$name.totals"
  json "$name.json" '.processes[0].syncs | .without_detail > 0 and .without_detail < .total' true
  json "$name.json" '[.warnings[] | select(contains("totals are complete"))] | length' 1
  json "$name.json" '[.warnings[] | select(contains("too low"))] | length' 0
  json "$name.json" '.processes[0] | .syncs.total == .syncs.without_detail + ([.threads[].syncs] | add)' true
}

expect 0 under --format json -o whole.json -- "$programs/mixture" 4 150
json whole.json '.losses.records' 0
json whole.json '.processes[0].syncs.without_detail' 0
json whole.json '.processes[0].syncs | [.total, .poll_waits, .failed]' '[4880,610,610]'
json whole.json '.processes[0].syncs.by_class' '{"explicit":2440,"copy":610,"pageable":1220,"implicit":610}'
for size in 64K 200K 700K; do
  same_totals small under --max-trace $size --format json -o small.json -- "$programs/mixture" 4 150
done
limited() {
  (ulimit -f 512 && under --format json -o limited.json -- "$programs/mixture" 4 150)
}
same_totals limited limited

# Between cudaProfilerStart and cudaProfilerStop, wherever the room ends.
expect 0 under --capture-range cudaProfilerApi --format json -o whole.json -- "$programs/mixture" 3 90 capture
json whole.json '.processes[0].syncs | [.total, .launches]' '[720,360]'
for size in 24K 150K 300K; do
  expect 0 under --max-trace $size --capture-range cudaProfilerApi --keep-traces kept-$size --format json \
    -o small.json -- "$programs/mixture" 3 90 capture
  jq -S "$totals" whole.json >whole.totals
  jq -S "$totals" small.json >small.totals
  equal whole.totals small.totals
  # the same trace without the windows
  mkdir "alone-$size" && cp "kept-$size"/*.sctrace "alone-$size"
  expect 0 "$synccount" report --format json "alone-$size"
  json out '.processes[0].syncs.total' 2240
done

# No room for a single record, and be it less than the counts need.
for size in 1 4K; do
  expect 0 under --max-trace $size --format json -o small.json -- "$programs/mixture" 4 150
  json small.json '.processes[0] | [.measured, .syncs.total, .syncs.without_detail, (.threads | length)]' '[true,4880,4880,0]'
done
expect 0 sh -c 'ulimit -f 8 && exec "$@"' - env LD_LIBRARY_PATH="$simcuda" "$synccount" run --no-ruler -q -o /dev/null -- \
  "$programs/mixture" 4 150
