# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "synccount check: the shipped gates on the GPU, and a PyTorch program that passes and fails"; }

# gate NAME STATUS SECONDS ARGUMENTS...: one check and its exit status.
gate() {
  local name=$1 status=$2 limit=$3
  shift 3
  timed "$name" "$limit" "$synccount" check "$@"
  if [ "$rc" = "$status" ]; then
    pass "$name" "status $status: $(tail -q -n 1 "$work/$name.out" "$work/$name.err" | tr '\n' ' ' | cut -c1-150)"
  else
    fail "$name" "status $rc instead of $status: $(why "$name")"
    return 1
  fi
}

# says NAME FILE TEXT...: each text is in the file.
says() {
  local name=$1 file=$2 text
  shift 2
  for text in "$@"; do
    if grep -qF -- "$text" "$file"; then
      pass "$name" "says '$text'"
    else
      fail "$name" "does not say '$text': $(head -c 300 "$file" | tr '\n' '|')"
    fi
  done
}

lacks_simulated() { # NAME FILE
  if grep -q SIMULATED "$2"; then fail "$1" "a GPU run says SIMULATED"; else pass "$1" "does not say SIMULATED"; fi
}

gate_layers() {
  gate gate-sorted 0 90 "$root/configs/one-sync-per-layer.yaml" --junit "$work/gate-sorted.xml" &&
    lacks_simulated gate-sorted-real "$work/gate-sorted.out"
  if gate gate-masked 1 120 "$root/configs/one-sync-per-layer.yaml" --variants masked; then
    says gate-masked-ops "$work/gate-masked.out" 'op any: 16 a layer' 'op nonzero: 16 a layer' 'op mask-index: 16 a layer'
  fi
  gate gate-three 0 150 "$root/configs/three-layers.yaml" --experts 4,8
  gate gate-floor 0 90 --experts 4 --expect 'sorted.floor <= 100ms' --expect 'sorted.floor >= 1us'
  gate gate-floor-fails 1 90 --experts 4 --expect 'sorted.floor <= 1us'
}

gate_torch() {
  local script="$root/probes/torch/count_warnings.py" name
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip gate-torch "python3 has no PyTorch here"
    return
  fi
  local -a program=(env LD_LIBRARY_PATH="$python_library_path" "$python" "$script" --experts 4 --tokens 4096)
  gate gate-torch-passes 0 120 --range 'torch:sorted:*' --max-syncs 1 --keep-traces "$work/gate-torch" -- \
    "${program[@]}" --output "$work/gate-torch-1.json"
  if gate gate-torch-fails 1 120 --range 'torch:masked:*' --max-syncs 1 --github --junit "$work/gate-torch.xml" -- \
    "${program[@]}" --output "$work/gate-torch-2.json"; then
    says gate-torch-sites "$work/gate-torch-fails.err" 'moe_layers.py:' 'cudaStreamSynchronize' '::error' '12 in one occurrence'
  fi
  gate gate-torch-class 0 60 --expect 'range(torch:sorted:*).class(implicit).syncs_per_occurrence == 0' \
    --expect 'range(torch:masked:*).syncs_per_occurrence == 12' "$work/gate-torch"
  # What both runs made is equal.
  for name in 1 2; do
    timed gate-torch-report-$name 120 "$synccount" run --format json -o "$work/gate-report-$name.json" -- "${program[@]}" \
      --output "$work/gate-torch-3.json"
  done
  succeeds gate-diff 60 "$synccount" diff --fail-on-increase "$work/gate-report-1.json" "$work/gate-report-2.json"
}

run_part() {
  needs gate "$synccount" "$probe" "$tracer" || return
  gate_layers
  gate_torch
  gate gate-hosts 1 30 "$root/reports/h200.json" --expect 'masked.syncs_per_layer <= 20'
}
