# SPDX-License-Identifier: Apache-2.0
expect 0 under --format json -o both.json -- "$programs/stepping" 2
json both.json '.processes[0].stacks.taken > 0' true
json both.json '[.processes[0].sites[] | .count] | add' 16
expect 0 under --stacks native --format json -o native.json -- "$programs/stepping" 2
json native.json '.processes[0].stacks.taken > 0' true
expect 0 under --stacks none --format json -o none.json -- "$programs/stepping" 2
json none.json '.processes[0].stacks.taken' 0
json none.json '[.processes[0].sites[] | .native | length] | add' 0
json none.json '.processes[0].syncs.total' 16 # counts never depend on it
for wrong in none,python ruby ''; do
  expect 2 under --stacks "$wrong" -- true
done
