# SPDX-License-Identifier: Apache-2.0
# What the program ends with is what run ends with, measured or not.
expect 0 under -q -- "$programs/stepping" 3
has err "21 syncs"
expect 7 under -q -- sh -c "'$programs/stepping' 3; exit 7"
has err "21 syncs"
expect 7 under -q -- sh -c 'exit 7'
for signal in 9:KILL 15:TERM 6:ABRT; do
  expect $((128 + ${signal%:*})) under -q -- sh -c "kill -${signal#*:} \$\$"
  has err "ended by signal ${signal%:*}"
done
# killed in mid-run: what had returned is counted
expect 137 under -q -- "$programs/stepping" 4 die
has err "26 syncs"
expect 127 under -- no-such-program
has err "not found in PATH"
expect 127 under -- ./no-such-program
echo "not a program" >plain
expect 126 under -- ./plain
has err "Permission denied"
# 0, and nothing was measured
expect 3 under -- true
has err "nothing could be measured"
expect 0 under --keep-going -- true
has err "nothing could be measured"
expect 5 under --keep-going -- sh -c 'exit 5'
