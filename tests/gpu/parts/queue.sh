# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "launches that wait for a full queue; counting on when the trace is full; run's round trip"; }

# queued NAME LAUNCHES KERNEL_US EVERY EXPECTATION...: tests/programs/filling under the tracer.
queued() {
  local name=$1
  timed "$name" 60 "$synccount" run --format json -o "$work/$name.json" -- "$tests/filling" "$2" "$3" "$4"
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return
  fi
  verdicts "$name-report" 20 "$python" "$here/expect_queue.py" "$name" "$work/$name.json" "$work/$name.out" "${@:5}"
}

run_part() {
  needs queue "$synccount" "$tracer" "$tests/filling" "$tests/mixture" || return
  if [ -z "$python" ]; then
    skip queue "no python3 here to read reports with"
    return
  fi
  queued queue-full 5000 100 0 waits
  queued queue-short-kernels 5000 20 0
  queued queue-room 5000 1 100 none
  timed queue-whole 60 "$synccount" run --format json -o "$work/whole.json" -- "$tests/mixture" 4 150
  [ "$rc" = 0 ] && timed queue-limited 60 "$synccount" run --max-trace 200K --format json -o "$work/limited.json" -- \
    "$tests/mixture" 4 150
  if [ "$rc" = 0 ]; then
    verdicts queue-limited-report 20 "$python" "$here/expect_queue.py" queue-limited --same "$work/whole.json" "$work/limited.json"
  else
    fail queue-limited "$(why queue-limited)"
  fi
}
