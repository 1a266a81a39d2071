# SPDX-License-Identifier: Apache-2.0
for command in ruler report help; do
  expect 0 "$synccount" help $command
  mv out asked
  expect 0 "$synccount" $command --help
  equal asked out
  expect 0 "$synccount" $command -h
  equal asked out
done
expect 0 "$synccount" help
mv out asked
expect 0 "$synccount" --help
equal asked out
for command in ruler report help; do
  grep -q "^  $command  " out || fail "$command is not in the list of commands"
done
expect 0 "$synccount" --version
grep -qE '^synccount [0-9]+\.[0-9]+\.[0-9]+$' out || fail "version"
# No line is wider than a terminal.
expect 0 "$synccount" help
[ "$(awk '{ if (length($0) > w) w = length($0) } END { print w }' out)" -le 100 ] || fail "a help line is wider than 100 columns"
