# SPDX-License-Identifier: Apache-2.0
# `report` on kept files says what the run said, to the byte, in every format.
expect 0 "$synccount" $small --experts 4,8,16 --config minimind-seed --keep-traces kept --format json -o run.json
for file in session.json counts.json; do
  [ -s "kept/$file" ] || fail "kept/$file is missing"
done
trace=$(ls kept/*.sctrace)
expect 0 "$synccount" report kept --format json
equal run.json out
expect 0 "$synccount" report "$trace" --format json
equal run.json out
(cd kept && "$synccount" report "$(basename "$trace")" --format json >../inside.json 2>../err) || fail "report from inside the folder"
equal run.json inside.json

for format in text markdown; do
  rm -rf again
  expect 0 "$synccount" $small --experts 4 --keep-traces again --format $format --per-expert -o "run.$format"
  expect 0 "$synccount" report again --format $format --per-expert
  equal "run.$format" out
done

# Without the documents beside it, a trace is a process.
mkdir alone && cp "$trace" alone/
expect 0 "$synccount" report alone --format json
json out '[.runs, (.processes | length), .processes[0].simulated]' '[[],1,true]'
json out '.processes[0].syncs.total > 0' 'true'
