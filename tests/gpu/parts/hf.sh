# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "HuggingFace MoE models under --torch-modules, against PyTorch's own sync warnings"; }

run_part() {
  needs hf "$tracer" "$synccount" "$tests/range_counts" || return
  if [ -z "$python" ] ||
    ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch, transformers' 2>>"$work/log.txt"; then
    skip hf "python3 has no PyTorch or no transformers here"
    return
  fi
  timed hf 240 env LD_LIBRARY_PATH="$python_library_path" "$synccount" run --torch-modules \
    --capture-range cudaProfilerApi --keep-traces "$work/hf-traces" --format json -o "$work/hf-report.json" \
    -- "$python" "$here/hf_moe.py" --output "$work/hf.json"
  if [ "$rc" != 0 ]; then
    fail hf "$(why hf)"
    return
  fi
  timed hf-ranges 60 "$tests/range_counts" "$work/hf-traces"/*.sctrace
  if [ "$rc" != 0 ]; then
    fail hf-ranges "$(why hf-ranges)"
    return
  fi
  verdicts hf-compare 30 "$python" "$here/compare_hf.py" "$work/hf.json" "$work/hf-report.json" "$work/hf-ranges.out"
}
