# SPDX-License-Identifier: Apache-2.0
# A probe that would run for minutes, ended through the command line in each way.
long="--device sim --layers 8 --hidden 512 --intermediate 1408 --tokens 4096 --experts 16"
start() {
  "$synccount" $long >out 2>err &
  pid=$!
  tries=0
  while [ "$(probes_running)" -eq 0 ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the probe did not start"
    sleep 0.1
  done
}
gone() {
  tries=0
  while [ "$(probes_running)" -ne 0 ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the probe is still running"
    sleep 0.1
  done
}
for signal in TERM HUP; do
  start
  kill -$signal $pid
  wait $pid
  status=$?
  case $signal in TERM) wanted=143 ;; HUP) wanted=129 ;; esac
  [ $status -eq $wanted ] || fail "SIG$signal gave exit status $status instead of $wanted"
  gone
  nothing_left
  [ ! -s out ] || fail "half a report was printed"
done
# SIGKILL: the files cannot be removed by anybody, but no process stays.
start
kill -KILL $pid
wait $pid
gone
rm -rf "$TMPDIR"/synccount-*
