# SPDX-License-Identifier: Apache-2.0
# The same verdict from the program, its kept traces, one trace, and its JSON report; nothing runs.
expect 0 under --ranges 'step:*=step' --warmup 1 --keep-traces kept --format json -o report.json -- "$programs/stepping" 5
trace=$(ls kept/*.sctrace)
cp "$trace" alone.sctrace
for from in kept "$trace" report.json; do
  expect 0 "$synccount" check --expect 'syncs_per_step <= 5' --range 'step:3' --max-syncs 5 "$from"
  expect 1 "$synccount" check --max-syncs 4 "$from"
done
expect 0 "$synccount" check --ranges 'step:*=step' --warmup 1 --expect 'syncs_per_step == 4' alone.sctrace
expect 1 "$synccount" check --ranges 'step:*=step' --warmup 1 --expect 'syncs_per_step == 5' alone.sctrace
# A report has no single occurrences: what needs them is not measured, and says what does.
expect 3 "$synccount" check --expect 'range(layer*).class(copy).syncs_per_occurrence == 0' report.json
has out "give the trace"
expect 0 "$synccount" check --expect 'range(layer*).class(copy).syncs_per_occurrence == 0' kept
# Layers and a program together: what could be asked of either is of neither, and nothing is passed over.
expect 3 "$synccount" check --max-syncs 999 report.json "$source/reports/h200.json"
has out "could be asked of either"
expect 1 "$synccount" check --expect 'process(*).syncs <= 1' --expect 'sorted.syncs_per_layer == 1' report.json "$source/reports/h200.json"
has out "passed        sorted.syncs_per_layer == 1"
# A report is as it was written, and that is said.
"$synccount" check --warmup 1 --expect 'syncs <= 99' report.json >out
has out "--warmup and --from leave nothing out of it"
expect 0 "$synccount" check "$source/reports/h200.json" --expect 'masked.syncs_per_layer == expected' --expect 'sorted.floor <= 200us'
lacks out SIMULATED
expect 1 "$synccount" check "$source/reports/h200.json" --expect 'syncs_per_layer <= 20'
has out "op nonzero: 16 a layer"

# Another tool's trace: nothing of ours ran there.
nsys=$source/tests/import/data/mfu_2gpu.sqlite
expect 0 "$synccount" check --range 'aten::to' --max-syncs 1 "$nsys"
has out "found 1 in 7 occurrences of 2 ranges"
expect 1 "$synccount" check --max-syncs 3 "$nsys"
has out "process 145 (python3)"
has out "blocking upload (cudaStreamSynchronize, explicit)"
expect 0 "$synccount" diff --fail-on-increase "$nsys" "$nsys"
# A process without such a thread is not compared, and what could not be known is told where it passed as well.
expect 0 "$synccount" check --expect 'thread(144).syncs >= 1' "$nsys"
has out "in 1 process"
has out "note: "
expect 0 "$synccount" check -q --expect 'thread(144).syncs >= 1' "$nsys"
lacks out "note: "

expect 2 "$synccount" check --max-syncs 1 nothing.sctrace
has err "cannot read 'nothing.sctrace'"
echo '{"schema": "synccount/report/1", "runs": [{"variant": 3.5}]}' >bad.json
expect 2 "$synccount" check --max-syncs 1 bad.json
has err "bad.json: runs[0].variant is not a text"
expect 2 "$synccount" check --max-syncs 1 kept -- true
has err "a program and traces"

# Beside a simulated program another one keeps its times, and is not said to be simulated.
expect 0 "$synccount" report --format csv kept "$nsys"
[ "$(cut -d, -f1,4 out | sort -u | grep -c '^modal,false$')" -eq 1 ] || fail "the other trace is said to be simulated"
! grep -q '^modal,.*,true,' out || fail "the other trace is said to be simulated"
expect 0 "$synccount" report --format json kept "$nsys"
json out '[.processes[] | .simulated]' '[true,false,false]'
json out '.processes[1].syncs.wait_us > 0' true
