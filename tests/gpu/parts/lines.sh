# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "synccount run on the PyTorch layers: every sync of every layer under its line; the reports in every format"; }

lines_of() { # VARIANT EXPERTS
  local name=lines-$1-$2
  timed "$name" 120 env LD_LIBRARY_PATH="$python_library_path" "$synccount" run --torch-modules --capture-range cudaProfilerApi \
    --keep-traces "$work/$name-traces" --format json -o "$work/$name.json" -- "$python" "$root/probes/torch/forward.py" "$1" \
    --experts "$2"
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return
  fi
  verdicts "$name-report" 20 "$python" "$here/expect_lines.py" "$name" "$work/$name.out" "$work/$name.json"
}

run_part() {
  local format
  needs lines "$tracer" "$synccount" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip lines "python3 has no PyTorch here"
    return
  fi
  lines_of masked 4
  lines_of sorted 8
  lines_of masked 8
  for format in text html chrome folded folded-count csv csv-syncs markdown; do
    succeeds "lines-$format" 60 "$synccount" report --format "$format" -o "$work/h200-torch.$format" "$work/lines-masked-8-traces" &&
      { [ -s "$work/h200-torch.$format" ] || fail "lines-$format" "it wrote nothing"; }
  done
  cp "$work/"h200-torch.{text,html} "$out/" 2>/dev/null
  succeeds lines-chrome-json 20 "$python" -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["traceEvents"]), "events")' \
    "$work/h200-torch.chrome"
}
