# SPDX-License-Identifier: Apache-2.0
# Standard input, output and error belong to the program; the report goes to -o, or after all else to standard error.
printf 'one\ntwo\0three' >in
under -q -o report -- sh -c "cat; echo complaint >&2; '$programs/stepping' 2" <in >out 2>err || fail "status $?"
equal in out
printf 'complaint\n' >wanted
equal wanted err
has report "16 syncs"
lacks report complaint
# a closed standard input stays closed
under -q -o report -- sh -c 'if cat <&0; then exit 4; else exit 0; fi; ' <&- >out 2>err
[ $? -eq 3 ] || fail "standard input was opened"
# nor do our files take the place of a closed standard error, and the program has none either
under --format json -o report.json -- sh -c "'$programs/stepping' 2; if echo x >&2; then exit 4; else exit 0; fi" 2>&- >out || fail "status $?"
json report.json '.processes[0].syncs.total' 16
# every format can go to standard error, whole and alone
under --format json -- "$programs/stepping" 2 2>report.json >out || fail "status $?"
json report.json '.processes[0].syncs.total' 16
[ ! -s out ] || fail "the report went to standard output"
under --format markdown -- "$programs/stepping" 2 2>report.md >out || fail "status $?"
has report.md "16 syncs"
# - is standard output, when it is asked for
expect 0 under -q -o - -- "$programs/stepping" 2
has out "16 syncs"
# told before anything has run
expect 3 under -o nowhere/report -- touch ran
[ ! -e ran ] || fail "the program ran though the report could not be written"
has err "nowhere/report"
