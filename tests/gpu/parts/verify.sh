# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "every kernel and layer against the CPU reference, the gates of the fused layer, model shapes"; }

# gates NAME TYPE: that the run NAME has judged what it should: a gate that was not there could not fail.
gates() {
  local name=$1 type=$2 a b refusals
  a=$(grep -cE "^ok +gate A (silu|swigluoai|relu2).* w4a(4|16) +$type " "$work/$name.out")
  b=$(grep -cE "^ok +gate B (silu|swigluoai|relu2).* w4a(4|16) +$type " "$work/$name.out")
  refusals=$(grep -cE "^ok +gate A refuses .* w4a(4|16) +$type " "$work/$name.out")
  if [ "$a" -ge 50 ] && [ "$b" -ge 20 ] && [ "$refusals" -ge 16 ]; then
    pass "$name-gates" "$a runs through gate A, $b through gate B, $refusals wrong layers refused, $type"
  else
    fail "$name-gates" "$a runs through gate A (50), $b through gate B (20), $refusals wrong layers refused (16), $type"
  fi
}

run_part() {
  needs verify "$probe" || return
  succeeds verify-fp32 100 "$probe" --pass verify --output "$work/verify-fp32.json"
  succeeds verify-bf16 100 "$probe" --pass verify --dtype bf16 --output "$work/verify-bf16.json"
  succeeds verify-fp32-top2 100 "$probe" --pass verify --dtype fp32 --top-k 2 --output "$work/verify-fp32-top2.json"
  # gpt-oss's experts: widths that are no multiple of 128, interleaved rows, biases, blocks of 64 rows; and Nemotron's, ungated.
  succeeds verify-gpt-oss 120 "$probe" --pass verify --dtype bf16 --layers 1 --hidden 2880 --intermediate 2880 --experts 8,32 \
    --top-k 4 --activation swigluoai --alpha 1.702 --beta 1 --limit 7 --w13-layout interleaved --biases 1 \
    --output "$work/verify-gpt-oss.json"
  succeeds verify-nemotron 120 "$probe" --pass verify --dtype bf16 --layers 1 --hidden 2688 --intermediate 1856 --experts 4,16 \
    --top-k 4 --activation relu2_no_mul --act-quant w4a16 --output "$work/verify-nemotron.json"
  gates verify-fp32 fp32
  gates verify-bf16 bf16
  succeeds verify-bf16-top2 100 "$probe" --pass verify --dtype bf16 --top-k 2 --output "$work/verify-bf16-top2.json"
}
