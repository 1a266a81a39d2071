# SPDX-License-Identifier: Apache-2.0
# No SIGXFSZ, which would leave the temporary folder behind. Pipes have no size limit: they carry what is said.
mkfifo said
cat said >words &
(
  ulimit -f 0
  exec "$synccount" $small --experts 4 >said 2>&1
)
status=$?
wait
[ $status -eq 3 ] || fail "exit status $status instead of 3: $(cat words)"
has words "File too large"
