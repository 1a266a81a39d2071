#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line on traces of PyTorch's profiler: report, check, several ranks, and files that cannot be read.
#   cli.sh SYNCCOUNT DATA
set -u
synccount=$1
data=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

expect() { # what, expected, found
  [ "$2" = "$3" ] && return
  printf '%s: expected %s, found %s\n' "$1" "$2" "$3"
  failed=1
}

json() { # query, files...
  query=$1
  shift
  "$synccount" report --format json "$@" 2>"$folder/err" | jq -c "$query"
}

expect 'a report' '[3,2,1,0,100]' "$(json '.processes[0] | [.syncs.total, .syncs.by_class.explicit, .syncs.by_class.pageable, .rank,
  .syncs.drain_gap_total_us]' "$data/event_sync.json.gz")"
expect 'a site without Python' '["scalar read-back","aten::_local_scalar_dense",[]]' "$(json '.processes[0].sites[0] |
  [.pattern, .native[0].function, .python]' "$data/event_sync.json.gz")"

# A rank has a file of its own; this one is not packed, and has another name than a trace of the profiler has.
zcat "$data/event_sync.json.gz" | sed 's/"rank": 0/"rank": 1/' >"$folder/other"
expect 'two ranks' '[[0,3],[1,3]]' "$(json '[.processes[] | [.rank, .syncs.total]]' "$data/event_sync.json.gz" "$folder/other")"

"$synccount" check --range 'ProfilerStep*' --max-syncs 3 "$data/event_sync.json.gz" >"$folder/out" 2>&1
expect 'a gate that holds' 0 $?
"$synccount" check --range 'ProfilerStep*' --max-syncs 2 "$data/event_sync.json.gz" >"$folder/out" 2>&1
expect 'a gate that does not' 1 $?
grep -q 'aten::_local_scalar_dense' "$folder/out" || expect 'its failure' 'the operator' "$(cat "$folder/out")"
"$synccount" check --range '\[param|cuda\]' --max-syncs 100 "$data/alexnet.json.gz" >"$folder/out" 2>&1
expect 'a gate over what is uncertain' 3 $?

"$synccount" report "$data/amd_mi250.json.gz" >"$folder/out" 2>&1
expect 'calls of HIP alone' 3 $?
grep -q 'HIP (AMD)' "$folder/out" || expect 'calls of HIP alone' 'their name' "$(cat "$folder/out")"

head -c 2000 "$data/event_sync.json.gz" >"$folder/cut.json.gz"
"$synccount" report "$folder/cut.json.gz" >"$folder/out" 2>"$folder/err"
expect 'a packed file that was cut off' 2 $?
head -c 9000 "$folder/other" >"$folder/cut.json"
"$synccount" report "$folder/cut.json" >"$folder/out" 2>>"$folder/err"
expect 'a file that was cut off' 2 $?
expect 'their errors, one line each' 2 "$(grep -c 'cut off' "$folder/err")"
expect 'nothing else' 2 "$(wc -l <"$folder/err" | tr -d ' ')"
exit $failed
