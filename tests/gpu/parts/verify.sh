# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "every kernel and every layer against the CPU reference, fp32 and bf16, top-1 and top-2"; }

run_part() {
  needs verify "$probe" || return
  succeeds verify-fp32 60 "$probe" --pass verify --output "$work/verify-fp32.json"
  succeeds verify-bf16 60 "$probe" --pass verify --dtype bf16 --output "$work/verify-bf16.json"
  succeeds verify-fp32-top2 60 "$probe" --pass verify --top-k 2 --output "$work/verify-fp32-top2.json"
  succeeds verify-bf16-top2 60 "$probe" --pass verify --dtype bf16 --top-k 2 --output "$work/verify-bf16-top2.json"
}
