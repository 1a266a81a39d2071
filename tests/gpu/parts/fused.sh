# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "the fused NVFP4 layer against its roofline, sorted dispatch and torch._grouped_mm: whether the aims are met"; }

run_part() {
  local seconds
  needs fused "$build/bench/bench_fused" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip fused "python3 has no PyTorch here"
    return
  fi
  seconds=$(seconds_left) # its points share what is left; the last one's setup may end behind that
  seconds=$((seconds > 420 ? 390 : seconds - 30))
  if [ "$seconds" -lt 60 ]; then
    skip fused "its points need more than the $(seconds_left) s that are left"
    return
  fi
  timed fused 420 env LD_LIBRARY_PATH="$python_library_path" "$python" "$root/bench/fused-nvfp4/compare.py" \
    --bench "$build/bench/bench_fused" --seconds "$seconds" --json "$work/fused.json"
  cp "$work/fused.out" "$out/fused-nvfp4.md" 2>/dev/null
  case $rc in
  0) pass fused "every aim is met ($took s)" ;;
  1) fail fused "an aim is missed: $(grep -c 'missed' "$work/fused.out") points; see fused-nvfp4.md" ;;
  *) fail fused "$(why fused)" ;;
  esac
}
