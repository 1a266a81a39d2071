# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "the Python lines of PyTorch's syncs, what taking stacks costs, and that nothing stalls"; }

# sites_run NAME SECONDS STACKS WHAT OPTIONS...: one Python process under the tracer; its traces in $work/NAME-traces.
sites_run() {
  local name=$1 limit=$2 stacks=$3
  shift 3
  mkdir -p "$work/$name-traces"
  timed "$name" "$limit" env LD_LIBRARY_PATH="$python_library_path" SYNCCOUNT_OUTPUT="$work/$name-traces" \
    SYNCCOUNT_STACKS="$stacks" LD_PRELOAD="$tracer" "$python" "$root/tests/gpu/sites_torch.py" "$@" \
    --output "$work/$name.json"
  [ "$rc" = 0 ] && return
  fail "$name" "$(why "$name")"
  return 1
}

sites_report() { # NAME: $work/NAME-report.json of its traces
  timed "$1-report" 120 "$synccount" report --format json -o "$work/$1-report.json" "$work/$1-traces"
  [ "$rc" = 0 ] && return
  fail "$1-report" "$(why "$1-report")"
  return 1
}

sites_lines() {
  sites_run sites-lines 120 python,native lines && sites_report sites-lines &&
    verdicts sites-lines-compare 20 "$python" "$here/expect_sites.py" lines "$work/sites-lines.json" \
      "$work/sites-lines-report.json"
}

sites_cost() {
  local round
  local -a none=() both=()
  for round in 1 2 3; do
    sites_run "sites-none-$round" 60 none cost && none+=("$work/sites-none-$round.json")
    sites_run "sites-both-$round" 60 python,native cost && both+=("$work/sites-both-$round.json")
  done
  [ ${#none[@]} = 3 ] && [ ${#both[@]} = 3 ] || return
  sites_report sites-both-3 &&
    verdicts sites-cost 20 "$python" "$here/expect_sites.py" cost "$work/sites-both-3-report.json" "${none[@]}" -- \
      "${both[@]}"
}

# The longest turn without the tracer is the measure: a wait for the interpreter's lock under the allocator's would hang.
sites_stress() {
  local seconds=${SITES_STRESS_SECONDS:-20} longest
  export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
  if sites_run sites-stress $((seconds + 60)) python,native stress --seconds "$seconds"; then
    longest=$(jq -r .longest_ms "$work/sites-stress.json" 2>/dev/null ||
      "$python" -c 'import json,sys; print(json.load(open(sys.argv[1]))["longest_ms"])' "$work/sites-stress.json")
    if awk -v ms="$longest" 'BEGIN { exit !(ms < 2000) }'; then
      pass sites-stress "$(cat "$work/sites-stress.json")"
    else
      fail sites-stress "a turn took $longest ms"
    fi
  fi
  unset PYTORCH_CUDA_ALLOC_CONF
}

run_part() {
  needs sites "$tracer" "$synccount" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip sites "python3 has no PyTorch here"
    return
  fi
  sites_lines
  sites_cost
  sites_stress
}
