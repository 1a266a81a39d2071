# SPDX-License-Identifier: Apache-2.0
# By content, whatever the name; beside traces of ours, and refused where only the other tool can read it.
data=$source/tests/import/data
cp "$data/mfu_2gpu.sqlite" trace.json
expect 0 "$synccount" report --format json trace.json
jq -e '[.processes[] | .pid, .syncs.total, .syncs.blocking_uploads] == [144, 3, 3, 145, 4, 4]' out >/dev/null ||
  fail "other counts"
jq -e '[.processes[].sites[] | .api, .range, (.drain_gap_total_us > 0)] == ["cudaStreamSynchronize",
  "aten::to/aten::_to_copy/aten::copy_", true, "cudaStreamSynchronize", "aten::to/aten::_to_copy/aten::copy_", true]' out \
  >/dev/null || fail "other sites"
jq -e '.device.simulated == false and .host.driver == "580.95.05" and .processes[0].host == "modal"' out >/dev/null ||
  fail "other facts"
expect 0 "$synccount" report trace.json
has out "drain gaps: the device had nothing to run for 269 us around 3 syncs"
has out "not recorded there: call"
lacks out "SIMULATED"

# Several files are several processes, ours among them.
expect 0 "$synccount" $small --experts 4 --keep-traces kept
expect 0 "$synccount" report --format json trace.json "$data/healthy_1pct.sqlite" kept/*.sctrace
jq -e '.processes | length >= 4' out >/dev/null || fail "not all processes"

# One that lies in the folder of a session is not part of it.
cp "$data/mfu_2gpu.sqlite" kept/nsys.sqlite
expect 0 "$synccount" report --format json kept/nsys.sqlite
jq -e '[.processes[].pid] == [144, 145] and .runs == []' out >/dev/null || fail "the session was read"

# Every format takes its events.
for format in chrome csv csv-syncs folded html markdown; do
  expect 0 "$synccount" report --format $format -o file.$format trace.json
  grep -q 'cudaStreamSynchronize' file.$format || fail "nothing in $format"
done

# A report that was not exported, something else, and what is damaged: what to do about each.
printf '\001\002\003\000 binary' >run.nsys-rep
expect 2 "$synccount" report run.nsys-rep
has err "nsys export --type sqlite -o 'run.sqlite' 'run.nsys-rep'"
head -c 20000 "$data/mfu_2gpu.sqlite" >cut.sqlite
expect 2 "$synccount" report cut.sqlite
has err "cut.sqlite"
has err "nsys export --type sqlite"
[ "$(wc -l <err)" -eq 1 ] || fail "more than one error"
expect 3 "$synccount" report "$source/tests/import/kineto/data/no_gpu.json.gz"
has out "nothing was counted"
echo "no trace" >note
expect 2 "$synccount" report note
has err "'note' is no trace"
has err "an SQLite export of Nsight Systems"
