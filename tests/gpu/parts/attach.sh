# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "synccount attach: C and PyTorch loops at full speed, dormant ones and by --inject"; }

# A C program: whole sessions, kills, forks and fifty cycles are tested on the simulated device; here that it holds on a GPU.
attach_loop() { # NAME SECONDS MARK SETTINGS... -- OPTIONS...
  local name=$1 seconds=$2 mark=$3 settings=() pid
  shift 3
  while [ "$1" != -- ]; do
    settings+=("$1")
    shift
  done
  shift
  rm -f "$work/$name.in" "$work/$name.json"
  mkfifo "$work/$name.in"
  env "${settings[@]}" "$tests/looping" 4 <"$work/$name.in" >"$work/$name.loop" 2>&1 &
  pid=$!
  exec 8>"$work/$name.in"
  for _ in $(seq 100); do
    grep -q '^ready' "$work/$name.loop" && break
    sleep 0.1
  done
  "$synccount" attach --seconds "$seconds" --format json -o "$work/$name.json" "$@" "$pid" 2>"$work/$name.err" &
  local command=$!
  for _ in $(seq 200); do
    grep -q 'counting in process' "$work/$name.err" && break
    kill -0 "$command" 2>/dev/null || break
    sleep 0.05
  done
  echo "mark $mark" >&8
  wait "$command"
  rc=$?
  echo end >&8
  exec 8>&-
  if wait "$pid"; then
    pass "$name-program" "the program went on and ended well"
  else
    fail "$name-program" "the program ended with $?: $(tail -n 2 "$work/$name.loop" | tr '\n' '|')"
  fi
  if [ "$rc" = 0 ]; then
    pass "$name" "$(tail -n 1 "$work/$name.err")"
  else
    fail "$name" "$(why "$name")"
    return 1
  fi
}

run_part() {
  needs attach "$synccount" "$tracer" "$tests/looping" || return
  if [ -z "$python" ]; then
    skip attach "no python3 here to read reports with"
    return
  fi
  # 4 threads, 200 read-backs each in a range of their own
  attach_loop attach-c-dormant 3 200 LD_PRELOAD="$tracer" SYNCCOUNT_DORMANT=1 -- &&
    verdicts attach-c-dormant-report 20 "$python" "$here/expect_attach.py" attach-c-dormant \
      "$work/attach-c-dormant.json" marked=4:200
  attach_loop attach-c-inject 3 200 LD_PRELOAD= -- --inject &&
    verdicts attach-c-inject-report 20 "$python" "$here/expect_attach.py" attach-c-inject "$work/attach-c-inject.json" \
      'warning=ranges not available'
  if ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip attach-torch "python3 has no PyTorch here"
    return
  fi
  local mode
  for mode in dormant inject; do
    verdicts "attach-torch-$mode" 90 env LD_LIBRARY_PATH="$python_library_path" "$python" "$here/attach_torch.py" drive \
      --synccount "$synccount" --tracer "$tracer" --mode "$mode"
  done
}
