# SPDX-License-Identifier: Apache-2.0
# A signal for synccount alone reaches the program, once, and the report still comes.
cat >trapping <<'END'
trap 'echo got >>got' INT TERM HUP QUIT USR1 USR2
: >ready
i=0
while [ ! -s got ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done
sleep 0.5 # would a second one come?
"$1" 2
exit 5
END
appears() { # FILE
  i=0
  while [ ! -e "$1" ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done
}
for signal in INT TERM HUP QUIT USR1 USR2; do
  rm -f got ready
  # a script starts its background jobs with SIGINT and SIGQUIT ignored
  env --default-signal=INT,QUIT LD_LIBRARY_PATH="$simcuda" "$synccount" run -q -- sh trapping "$programs/stepping" >out 2>err &
  pid=$!
  appears ready
  kill -$signal $pid
  wait $pid
  got=$?
  [ $got -eq 5 ] || fail "SIG$signal: status $got"
  [ "$(wc -l <got)" -eq 1 ] || fail "SIG$signal came $(wc -l <got) times"
  has err "16 syncs"
done

# What the program does to its own process group reaches it once.
rm -f got
cat >grouping <<'END'
trap 'echo got >>got' USR1
kill -USR1 0
sleep 0.5
"$1" 2
END
setsid env LD_LIBRARY_PATH="$simcuda" "$synccount" run -q -- sh grouping "$programs/stepping" >out 2>err || fail "status $?"
[ "$(wc -l <got)" -eq 1 ] || fail "a signal to the own group came $(wc -l <got) times"

# An ignored signal stays ignored, for both.
rm -f got ready
nohup env LD_LIBRARY_PATH="$simcuda" "$synccount" run -q -- sh -c 'kill -HUP $$; echo alive' >out 2>err </dev/null
has out alive

# The terminal signals the whole group: once is enough.
if command -v script >/dev/null && script --version >/dev/null 2>&1; then
  rm -f got ready report
  cat >session <<END
LD_LIBRARY_PATH='$simcuda' '$synccount' run -q -o report -- sh trapping '$programs/stepping'
END
  {
    appears ready
    printf '\003'
    appears report # the session itself ends by the signal
  } | script -qec 'sh session' /dev/null >out 2>err
  [ "$(wc -l <got)" -eq 1 ] || fail "the terminal's SIGINT came $(wc -l <got) times"
  has report "16 syncs"

  # ended by it, the program's end is told, and the report comes all the same
  rm -f ready status
  cat >session <<END
LD_LIBRARY_PATH='$simcuda' '$synccount' run -q -o report2 -- sh -c "'$programs/stepping' 2; : >ready; exec sleep 20"
echo \$? >status
END
  {
    appears ready
    printf '\003'
    appears status
  } | script -qec 'trap : INT; sh -c "trap : INT; . ./session"' /dev/null >out 2>err
  [ "$(cat status)" = 130 ] || fail "status $(cat status)"
  has report2 "16 syncs"
fi
