# SPDX-License-Identifier: Apache-2.0
echo old >report.md
expect 0 "$synccount" $small --experts 4 --format markdown -o report.md
[ ! -s out ] || fail "something on standard output"
has report.md SIMULATED
lacks report.md old
expect 3 "$synccount" $small --experts 4 -o no/such/folder/report
has err "cannot write the report to 'no/such/folder/report'"
mkdir folder
expect 3 "$synccount" $small --experts 4 -o folder
has err "cannot write"
[ "$(ls | grep -c 'report.md')" -eq 1 ] || fail "a temporary file is left"
expect 0 "$synccount" $small --experts 4 -o /dev/null
# A full disk is told, and is no success.
if [ -w /dev/full ]; then
  "$synccount" $small --experts 4 >/dev/full 2>err
  [ $? -eq 3 ] || fail "writing to a full disk succeeded"
  has err "No space left"
  "$synccount" --help >/dev/full 2>err
  [ $? -eq 3 ] || fail "writing the help to a full disk succeeded"
fi
