# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "synccount itself: counts, laws, identical outputs, within 60 s"; }

# counted NAME OPTIONS... -- EXPECTATIONS...: one run of the main command, and what its JSON must say.
counted() {
  local name=$1 options=()
  shift
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  timed "$name" 100 "$synccount" "${options[@]}" --device cuda --quiet --format json -o "$work/$name.json"
  judged "$name" "$work/$name.json" "$@"
}

# judged NAME REPORT EXPECTATIONS...: what `timed NAME` left behind.
judged() {
  local name=$1 report=$2
  shift 2
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return
  fi
  if [ "${took%.*}" -lt 60 ]; then
    pass "$name" "ended with 0 after $took s"
  else
    fail "$name" "took $took s, more than 60"
  fi
  verdicts "$name-report" 20 "$python" "$here/expect_report.py" "$name" "$report" "$@"
}

run_part() {
  needs counts "$synccount" "$probe" "$tracer" || return
  if [ -z "$python" ]; then
    skip counts "no python3 here to read reports with"
    return
  fi
  # The run that the issue names makes the host's report as well, in both formats.
  timed counts 110 "$root/scripts/make-report" --synccount "$synccount" --folder "$work/report" h200 \
    --experts 4,8,16 --assume-round-trip 26us,116us --device cuda
  judged counts "$work/report/h200.json" \
    per-layer=masked:4:12 per-layer=masked:8:24 per-layer=masked:16:48 'law=masked:3.00 E + 0' \
    per-layer=sorted:4:1 per-layer=sorted:8:1 per-layer=sorted:16:1 'law=sorted:0.00 E + 1' identical exact \
    per-layer=fused-nvfp4:4:0 per-layer=fused-nvfp4:8:0 per-layer=fused-nvfp4:16:0 'law=fused-nvfp4:0.00 E + 0'
  cp "$work/report/"h200.* "$out/" 2>/dev/null
  counted counts-one-expert --routing one-expert --experts 8 --layers 2 -- \
    per-layer=masked:8:10 per-layer=sorted:8:1 per-layer=fused-nvfp4:8:0 identical exact
  counted counts-decode --tokens 1 --experts 4 --layers 2 -- per-layer=masked:4:6 per-layer=sorted:4:1 per-layer=fused-nvfp4:4:0 identical exact
  counted counts-bf16 --dtype bf16 --experts 8 --layers 2 -- per-layer=masked:8:24 per-layer=sorted:8:1 per-layer=fused-nvfp4:8:0 identical exact
  counted counts-top2 --top-k 2 --experts 8 --layers 2 -- per-layer=masked:8:24 per-layer=sorted:8:1 per-layer=fused-nvfp4:8:0 identical exact
  counted counts-w4a16 --act-quant w4a16 --experts 8 --top-k 2 --layers 2 -- per-layer=fused-nvfp4:8:0 identical exact
  counted counts-gpt-oss --config gpt-oss-20b --layers 1 --tokens 64 -- per-layer=fused-nvfp4:32:0 exact
}
