# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "compute-sanitizer over every kernel, the fused layer's too: memcheck, racecheck, initcheck, synccheck"; }

find_sanitizer() {
  local candidate
  for candidate in "$(command -v compute-sanitizer)" "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
    "${CUDA_HOME:-/usr/local/cuda}"/compute-sanitizer/compute-sanitizer /opt/nvidia/*/compute-sanitizer; do
    if [ -x "$candidate" ] && [ ! -d "$candidate" ]; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

run_part() {
  needs sanitizer "$probe" || return
  local sanitizer tool name report
  if ! sanitizer=$(find_sanitizer); then
    skip sanitizer "no compute-sanitizer here"
    return
  fi
  for tool in memcheck racecheck initcheck synccheck; do
    name=sanitizer-$tool
    # The capture check makes calls that must fail: memcheck reports memory, the probe checks every status itself.
    report=
    [ "$tool" = memcheck ] && report='--report-api-errors no'
    # shellcheck disable=SC2086 # two words, or none
    timed "$name" 240 "$sanitizer" --tool "$tool" $report --error-exitcode 9 "$probe" --pass verify --experts 4 --tokens 64 --hidden 64 \
      --intermediate 96 --layers 1 --output "$work/$name.json"
    if [ "$rc" = 0 ] && grep -qE 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' "$work/$name.out" "$work/$name.err"; then
      pass "$name" "no error ($took s)"
    elif grep -qiE 'device not supported|unable to|not supported' "$work/$name.out" "$work/$name.err" && [ "$rc" != 9 ]; then
      skip "$name" "compute-sanitizer does not work here: $(why "$name")"
    else
      fail "$name" "$(grep -hE '^=========' "$work/$name.out" "$work/$name.err" | head -n 3 | tr '\n' '|') $(why "$name")"
    fi
  done
}
