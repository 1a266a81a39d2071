# SPDX-License-Identifier: Apache-2.0
# A JSON report of anything, read by `report`, is written as it was, with the same exit status.
again() {
  "$synccount" report --format json -o first.json "$@" 2>err
  wanted=$?
  [ -s first.json ] || fail "no report of $*"
  expect $wanted "$synccount" report --format json -o second.json first.json
  equal first.json second.json
}

expect 0 "$synccount" $small --experts 4,8,16 --assume-round-trip 26us,116us --keep-traces probe
again probe
json second.json '[(.assumed_round_trips_us | length), (.runs[].assumed_floors | length)] | unique' '[3]'
json second.json '[.runs[0] | .hit, .syncs.by_layer_expert, .syncs.by_layer_outside | length] | unique' '[2]'
# Whatever is told of the host, too.
for format in text markdown; do
  expect 0 "$synccount" report --format $format -o probe.$format probe
  expect 0 "$synccount" report --format $format -o again.$format first.json
  equal probe.$format again.$format
done
has probe.text "it plays a round trip of"
# And figures.
for from in probe first.json; do
  expect 0 "$synccount" report --format html -o page.html "$from"
  sed -n '/class="heat"/,/<\/svg>/p' page.html >"heat.$(basename "$from")"
done
[ "$(wc -l <heat.probe)" -gt 9 ] || fail "no heat maps"
equal heat.probe heat.first.json

expect 0 under --keep-traces program -- "$programs/stepping" 5
again program
for from in program first.json; do
  expect 0 "$synccount" report -o "text.$(basename "$from")" "$from"
done
equal text.program text.first.json
again program/*.sctrace
expect 0 under --max-trace 64K --keep-traces full -- "$programs/mixture" 4 150
again full
json second.json '.processes[0] | [.losses.records > 0, .losses.totals_complete, .syncs.without_detail > 0]' '[true,true,true]'
expect 0 under --keep-traces forks -- "$programs/forking" exec
again forks
again "$source/reports/h200.json"
for trace in "$source"/tests/import/data/*.sqlite "$source"/tests/import/kineto/data/*.json*; do
  again "$trace"
done
again probe "$source/tests/import/data/mfu_2gpu.sqlite" "$source/reports/h200.json"
