# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "known sequences of calls: runtime, per-thread default stream, static runtime, driver"; }

run_part() {
  needs programs "$tests/check_programs" "$tracer" || return
  local table
  for table in runtime per-thread static driver; do
    verdicts "programs-$table" 60 "$tests/check_programs" --tracer "$tracer" "$table"
  done
}
