# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "what the tracer adds to a launch and a read-back, beside Nsight Systems where it is found"; }

run_part() {
  local loop=$build/bench/bench_tracer_loop overhead=$root/bench/tracer/overhead
  needs cost "$loop" "$overhead" "$tracer" || return
  timed cost 180 sh "$overhead" "$loop" "$tracer" --rounds 7 --check
  while IFS= read -r line; do
    say "  $line"
  done <"$work/cost.out"
  case $rc in
  0) pass cost "within the limits: launch 0.5 us, kernel + copy + synchronise 1.0 us, a third of nsys where it ran ($took s)" ;;
  *) fail cost "$(why cost)" ;;
  esac
}
