# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "PyTorch's own sync warnings against the tracer's count, masked and sorted, plain LD_PRELOAD"; }

# torch_case NAME OPTIONS...: one Python process under the tracer, then the comparison.
torch_case() {
  local name=$1 traces=$work/$1-traces
  shift
  mkdir -p "$traces"
  # Python keeps the libraries of its wheels: ours are for our programs.
  timed "$name" 120 env LD_LIBRARY_PATH="$python_library_path" SYNCCOUNT_OUTPUT="$traces" LD_PRELOAD="$tracer" \
    "$python" "$root/probes/torch/count_warnings.py" --output "$work/$name.json" "$@"
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return
  fi
  timed "$name-ranges" 30 "$tests/range_counts" "$traces"/*.sctrace
  if [ "$rc" != 0 ]; then
    fail "$name-ranges" "$(why "$name-ranges")"
    return
  fi
  verdicts "$name-compare" 20 "$python" "$here/compare_torch.py" "$work/$name.json" "$work/$name-ranges.out"
  timed "$name-report" 30 "$synccount" report --format json -o "$work/$name-report.json" "$traces"
  if [ "$rc" = 0 ]; then
    pass "$name-report" "synccount report reads the same traces ($took s)"
  else
    fail "$name-report" "$(why "$name-report")"
  fi
}

run_part() {
  needs torch "$tracer" "$tests/range_counts" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip torch "python3 has no PyTorch here"
    return
  fi
  torch_case torch --experts 4,8,16 --tokens 4096,1
  torch_case torch-top2 --experts 8 --tokens 4096 --top-k 2
}
