# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "torchrun with two ranks: NCCL on two GPUs, or gloo on one; the merged report"; }

ranks_run() { # NAME BACKEND OPTIONS...: one run of two ranks, its traces kept, its report checked
  local name=$1 backend=$2
  shift 2
  timed "$name" 240 env LD_LIBRARY_PATH="$python_library_path" OMP_NUM_THREADS=2 "$synccount" run --format json \
    -o "$work/$name.json" --keep-traces "$work/$name-traces" --ranges 'step:*=step' --capture-range cudaProfilerApi \
    "$@" -- "$python" -m torch.distributed.run --nproc-per-node 2 --master-port $((20000 + $$ % 20000)) \
    "$root/tests/gpu/ranks_torch.py" --backend "$backend"
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return 1
  fi
  pass "$name" "two ranks by $backend ended after $took s"
  verdicts "$name-report" 20 "$python" "$here/expect_company.py" "$name" "$work/$name.json" "$work/$name.out"
}

# The kept traces merge to the same report, and the text of it names the rank that differs.
ranks_again() { # NAME
  local differ='The counts differ: rank 0 has '
  [ "$1" != ranks-nccl ] || differ='The counts differ: rank 0 has 40, rank 1 has 60.'
  timed "$1-text" 60 "$synccount" report "$work/$1-traces"
  if [ "$rc" = 0 ] && grep -qF '2 ranks' "$work/$1-text.out" && grep -qF "$differ" "$work/$1-text.out"; then
    pass "$1-text" "$(grep -F 'The counts differ' "$work/$1-text.out" | head -n 1 | cut -c1-200)"
  else
    fail "$1-text" "the report does not compare the ranks: $(why "$1-text")"
  fi
  timed "$1-again" 60 "$synccount" report --format json -o "$work/$1-again.json" "$work/$1-traces"
  if cmp -s "$work/$1.json" "$work/$1-again.json"; then
    pass "$1-again" "the kept traces give the same report"
  else
    fail "$1-again" "the kept traces give another report: $(why "$1-again")"
  fi
}

run_part() {
  local gpus name backend
  needs ranks "$synccount" "$tracer" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch.distributed.run' 2>>"$work/log.txt"; then
    skip ranks "python3 has no PyTorch here"
    return
  fi
  gpus=$(LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch; print(torch.cuda.device_count())' 2>>"$work/log.txt")
  if [ "${gpus:-0}" -ge 2 ]; then
    name=ranks-nccl backend=nccl
  else
    say "ranks: one GPU here: two processes share it, by gloo instead of NCCL"
    name=ranks-gloo-one-gpu backend=gloo
  fi
  ranks_run "$name" "$backend" && ranks_again "$name"
}
