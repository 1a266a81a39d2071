# SPDX-License-Identifier: Apache-2.0
# A trace that was full has no more details, and its totals are whole: they can be gated, single occurrences cannot.
SYNCCOUNT_MAX_TRACE=64K
export SYNCCOUNT_MAX_TRACE
expect 0 env LD_LIBRARY_PATH="$simcuda" "$synccount" run --format json -o report.json --stacks none -- "$programs/threads" 4 2000
total=$(jq '.processes[0].syncs.total' report.json)
lost=$(jq '.losses.records' report.json)
[ "$lost" -gt 0 ] || fail "the trace was not full"
expect 0 env LD_LIBRARY_PATH="$simcuda" "$synccount" check --stacks none --expect "syncs == $total" -- "$programs/threads" 4 2000
expect 1 env LD_LIBRARY_PATH="$simcuda" "$synccount" check --stacks none --max-syncs $((total - 1)) -- "$programs/threads" 4 2000
expect 3 env LD_LIBRARY_PATH="$simcuda" "$synccount" check --stacks none --expect "class(copy).syncs == 0" -- "$programs/threads" 4 2000
has err "were lost"
