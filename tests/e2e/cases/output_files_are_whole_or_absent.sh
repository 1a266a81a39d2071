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
# What cannot be written is told before anything is measured: no probe has run, no folder was made.
SYNCCOUNT_PROBE=$work/no-such-probe
export SYNCCOUNT_PROBE
expect 3 "$synccount" $small --experts 4 --keep-traces kept -o no/such/folder/report
has err "cannot write the report to 'no/such/folder/report'"
[ ! -e kept ] || fail "the folder for the traces was made"
unset SYNCCOUNT_PROBE
expect 0 "$synccount" $small --experts 4 -o -
has out SIMULATED
[ ! -e ./- ] || fail "a file called - was written"
# A link is written through: /dev/stdout is one, and must not become a file.
echo old >target
ln -s target link
expect 0 "$synccount" $small --experts 4 -o link
[ -L link ] || fail "the link was replaced"
has target SIMULATED
# A full disk is told, and is no success.
if [ -w /dev/full ]; then
  "$synccount" $small --experts 4 >/dev/full 2>err
  [ $? -eq 3 ] || fail "writing to a full disk succeeded"
  has err "No space left"
  "$synccount" --help >/dev/full 2>err
  [ $? -eq 3 ] || fail "writing the help to a full disk succeeded"
fi
