# SPDX-License-Identifier: Apache-2.0
# Before there is anything to tidy up, and after: nothing but a signal ends the wait for the other end of a pipe.
mkfifo pipe
interrupted() { # ARGUMENT...
  "$synccount" $small --experts 4 "$@" >out 2>err &
  pid=$!
  sleep 2
  kill -TERM $pid 2>/dev/null || fail "it did not wait: $*"
  tries=0
  while kill -0 $pid 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { kill -KILL $pid; fail "SIGTERM did not end it: $*"; }
    sleep 0.1
  done
  wait $pid
  [ $? -eq 143 ] || fail "another exit status than 143: $*"
}
interrupted --config pipe
interrupted -o pipe
