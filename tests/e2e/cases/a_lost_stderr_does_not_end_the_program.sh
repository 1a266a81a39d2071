# SPDX-License-Identifier: Apache-2.0
# The tracer's one line goes to a pipe that nobody reads, or to a log at its size limit: the program ends as it would have.
program=$build/tests/threads
[ -x "$program" ] || fail "no $program"
mkdir traces
cat >runner <<RUNNER
LD_LIBRARY_PATH="$build/lib/simcuda\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" LD_PRELOAD="$build/lib/libsynccount.so" \\
  SYNCCOUNT_OUTPUT="$work/traces" exec "$program" 2 5
RUNNER
mkfifo gone
: <gone & # the reader goes as soon as it has come
{ wait; sh runner >out; echo $? >status; } 2>gone
[ "$(cat status)" -eq 0 ] || fail "a closed pipe ended the program: status $(cat status)"
head -c 2097152 /dev/zero >log
(ulimit -f 4096; sh runner >out 2>>log) || fail "a full log ended the program: status $?"
