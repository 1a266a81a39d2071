# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "a whole fused forward in a CUDA graph; the masked loop and sorted dispatch refused by the capture"; }

# captured NAME TEXT: the run's line that must be there.
captured() {
  if line=$(grep -E "^ok +capture $2" "$work/capture.out" | head -n 1) && [ -n "$line" ]; then
    pass "capture-$1" "${line#ok }"
  else
    fail "capture-$1" "no line \"capture $2\": $(grep -E 'capture' "$work/capture.out" | head -n 3 | tr '\n' '|')"
  fi
}

run_part() {
  needs capture "$probe" || return
  timed capture 100 "$probe" --pass verify --dtype bf16 --experts 8 --top-k 2 --layers 8 --hidden 512 --intermediate 256 \
    --output "$work/capture.json"
  [ "$rc" = 0 ] || fail capture "$(why capture)"
  captured fused 'fused-nvfp4, 8 experts: 8 layers, [0-9]+ graph nodes, replayed with the same bits'
  local variant
  for variant in masked sorted; do
    captured "$variant" "$variant, 8 experts: refused, as it must be: .*(StreamCapture|capture)"
    captured "$variant-after" "$variant, 8 experts: the stream works again, with the same bits"
  done
  if needs capture-wrong "$tests/synccount-probe-fused-readback"; then
    timed capture-wrong 100 "$tests/synccount-probe-fused-readback" --pass verify --dtype fp32 --experts 4 --layers 2 --hidden 64 \
      --intermediate 96 --variants fused-nvfp4
    if [ "$rc" = 1 ] && grep -qE '^WRONG +capture fused-nvfp4, 4 experts: refused' "$work/capture-wrong.out"; then
      pass capture-wrong "a fused layer that reads back is refused"
    else
      fail capture-wrong "$(why capture-wrong)"
    fi
  fi
}
