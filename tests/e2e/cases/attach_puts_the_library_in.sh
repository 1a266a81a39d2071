# SPDX-License-Identifier: Apache-2.0
# A program that was started without us gets the library while it works at full speed, and knows what it did meanwhile.
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: attach --inject is for x86-64"; exit 77; }

# tell COMMAND ANSWER: to the program, and waits until it has answered.
tell() {
  echo "$1" >&9
  wait_until grep -q "^$2" said
}
wait_until() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "waited in vain for: $*"
    sleep 0.05
  done
}

for round in 1 2 3; do
  rm -f orders said
  mkfifo orders
  env LD_LIBRARY_PATH="$simcuda" "$programs/looping" 2 <orders >said 2>&1 &
  program=$!
  exec 9>orders
  wait_until grep -q '^ready' said

  "$synccount" attach --inject --seconds 1 --format json -o "full.json" $program 2>err
  got=$?
  if grep -q 'may not be attached to' err; then
    echo "SKIPPED: $(cat err)"
    exec 9>&-
    wait $program
    exit 77
  fi
  [ $got -eq 0 ] || fail "attach --inject: exit status $got"
  has err "loads a library into the running process $program"
  json full.json '.processes[0].syncs.total > 100' true

  # all is quiet but for what it is told to do; the library is there already
  tell hold held
  rm err # what an earlier one said there must not be taken for this one's word
  "$synccount" attach --inject --format json -o exact.json $program 2>err &
  attached=$!
  wait_until grep -qs 'counting in process' err
  lacks err "loads a library"
  tell "work 37" "worked 37"
  kill -TERM $attached
  wait $attached || fail "the second attach: exit status $?"
  json exact.json '.processes[0].syncs.total' 37

  # formats that need every sync by itself have them
  rm err
  "$synccount" attach --inject --format csv-syncs -o syncs.csv $program 2>err &
  attached=$!
  wait_until grep -qs 'counting in process' err
  tell "work 5" "worked 5"
  kill -TERM $attached
  wait $attached || fail "the third attach: exit status $?"
  [ "$(wc -l <syncs.csv)" -eq 6 ] || fail "syncs.csv has other lines than a head and 5 syncs: $(cat syncs.csv)"
  tell go going
  tell "mark 20" "marked 20"
  echo end >&9
  exec 9>&-
  wait $program || fail "the program's exit status is $?"
  has said ended
done
rmdir "$TMPDIR/synccount-$(id -u)" || fail "a socket was left behind"
nothing_left
