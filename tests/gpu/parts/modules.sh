# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "--torch-modules: names, steps, backward, compiled regions, exceptions, and what a call costs"; }

# modules_run NAME WHAT OPTIONS...: modules_torch.py WHAT under `synccount run OPTIONS`.
modules_run() {
  local name=$1 what=$2
  shift 2
  timed "$name" 120 env LD_LIBRARY_PATH="$python_library_path" "$synccount" run "$@" --format json \
    -o "$work/$name-report.json" -- "$python" "$here/modules_torch.py" "$what" --output "$work/$name.json"
  [ "$rc" = 0 ] && return
  fail "$name" "$(why "$name")"
  return 1
}

run_part() {
  local what
  needs modules "$tracer" "$synccount" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip modules "python3 has no PyTorch here"
    return
  fi
  for what in train recompute infer compile; do
    modules_run "modules-$what" "$what" --torch-modules &&
      verdicts "modules-$what-check" 20 "$python" "$here/expect_modules.py" "$what" "$work/modules-$what.json" \
        "$work/modules-$what-report.json"
  done
  modules_run modules-without cost && modules_run modules-cost cost --torch-modules &&
    verdicts modules-cost-check 20 "$python" "$here/expect_modules.py" cost "$work/modules-without.json" \
      "$work/modules-cost.json" "$work/modules-cost-report.json"
}
