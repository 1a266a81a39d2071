# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "what PyTorch's warn mode, Nsight Systems, torch.profiler and synccount see of known waits"; }

run_part() {
  needs detectors "$synccount" "$tracer" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip detectors "python3 has no PyTorch here"
    return
  fi
  timed detectors 240 env LD_LIBRARY_PATH="$python_library_path" "$python" "$root/bench/detectors/compare.py" \
    --synccount "$synccount" --keep "$work/detectors" --check
  while IFS= read -r line; do
    say "  $line"
  done <"$work/detectors.out"
  case $rc in
  0) pass detectors "synccount saw what it claims to ($took s)" ;;
  *) fail detectors "$(why detectors)" ;;
  esac
}
