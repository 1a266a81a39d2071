# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "torch.profiler in a program that is counted, and one that was there first"; }

run_part() {
  needs profiler "$tracer" "$synccount" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip profiler "python3 has no PyTorch here"
    return
  fi
  # We hold CUPTI's slot: the program goes on, its profiler sees no GPU, and the report says so.
  timed profiler-second 120 env LD_LIBRARY_PATH="$python_library_path" "$synccount" run --torch-modules --format json \
    -o "$work/profiler-report.json" -- "$python" "$here/modules_torch.py" profile --output "$work/profiler.json"
  if [ "$rc" = 0 ]; then
    verdicts profiler-second-check 20 "$python" "$here/expect_modules.py" profile "$work/profiler.json" \
      "$work/profiler-report.json"
  else
    fail profiler-second "$(why profiler-second)"
  fi
  # The profiler holds it: it goes on, and the trace of the tracer that comes later names it.
  mkdir -p "$work/profiler-traces"
  timed profiler-first 120 env LD_LIBRARY_PATH="$python_library_path" SYNCCOUNT_OUTPUT="$work/profiler-traces" \
    "$python" "$here/modules_torch.py" late --tracer "$tracer" \
    --output "$work/profiler-late.json"
  if [ "$rc" != 0 ]; then
    fail profiler-first "$(why profiler-first)"
    return
  fi
  timed profiler-first-report 30 "$synccount" report --format json "$work/profiler-traces"
  local named known
  named=$(grep -o 'taken by [^.]*' "$work/profiler-first-report.out" | head -n 1)
  known=$(cat "$work/profiler-late.json")
  if [ -n "$named" ] && [ "$rc" = 3 ] && ! grep -q '"device_events": 0[,}]' "$work/profiler-late.json"; then
    pass profiler-first "$named; $known"
  else
    fail profiler-first "status $rc; $known; $(grep subscriber "$work/profiler-first-report.out" | head -n 1)"
  fi
}
