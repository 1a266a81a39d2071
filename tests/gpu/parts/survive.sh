# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "64 threads, fork and exec, sudden ends, a late tracer, a program without CUDA"; }

run_part() {
  needs survive "$tests/check_programs" "$tracer" || return
  local check
  for check in threads fork end late untouched; do
    verdicts "survive-$check" 60 "$tests/check_programs" --tracer "$tracer" "$check"
  done
}
