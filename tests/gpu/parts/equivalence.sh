# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "masked and sorted layers train alike in PyTorch, and what each phase of training waits for"; }

run_part() {
  needs equivalence "$tracer" "$synccount" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip equivalence "python3 has no PyTorch here"
    return
  fi
  local probes=$root/probes/torch
  verdicts equivalence-cuda 200 env LD_LIBRARY_PATH="$python_library_path" "$python" "$probes/equivalence.py" check \
    --device cuda
  verdicts equivalence-cpu 200 env LD_LIBRARY_PATH="$python_library_path" "$python" "$probes/equivalence.py" check \
    --device cpu
  timed equivalence-count 200 env LD_LIBRARY_PATH="$python_library_path" "$synccount" run --format json \
    -o "$work/equivalence-report.json" -- "$python" "$probes/equivalence.py" count --output "$work/equivalence.json"
  if [ "$rc" != 0 ]; then
    fail equivalence-count "$(why equivalence-count)"
    return
  fi
  verdicts equivalence-compare 30 "$python" "$here/compare_equivalence.py" "$work/equivalence.json" \
    "$work/equivalence-report.json"
  # The measured laws, for the documentation.
  grep -E '^(torch|LAW) ' "$work/equivalence-compare.out" | tee -a "$results"
}
