# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "probes that are wrong on purpose: the numbers must show it"; }

# wrong NAME PROBE EXPECTATION: the main command over that probe; whatever its status, the counts are read.
wrong() {
  local name=wrong-$1 wrong_probe=$tests/$2
  needs "$name" "$wrong_probe" || return
  timed "$name" 60 env SYNCCOUNT_PROBE="$wrong_probe" "$synccount" --experts 4 --layers 2 --tokens 256 --hidden 64 \
    --intermediate 96 --forwards 1 --device cuda --quiet --format json -o "$work/$name.json"
  if [ ! -s "$work/$name.json" ]; then
    fail "$name" "no report: $(why "$name")"
    return
  fi
  verdicts "$name-report" 20 "$python" "$here/expect_report.py" "$name" "$work/$name.json" counts-only "$3"
}

run_part() {
  needs wrong "$synccount" "$tracer" || return
  if [ -z "$python" ]; then
    skip wrong "no python3 here to read reports with"
    return
  fi
  wrong extra-any synccount-probe-extra-any spread=masked:4:12:13
  wrong missing-sync synccount-probe-missing-sync spread=masked:4:11:12
  wrong device-empty synccount-probe-device-empty spread=sorted:4:1:5
  wrong fused-readback synccount-probe-fused-readback spread=fused-nvfp4:4:0:1
}
