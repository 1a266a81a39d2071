# SPDX-License-Identifier: Apache-2.0
step=--ranges=step:*=step
layer=--ranges=layer:*=layer
expect 0 under "$step" "$layer" --format json -o all.json -- "$programs/stepping" 5
json all.json '.processes[0].steps' '{"source":"ranges","count":5,"warmup":0,"min":5,"median":5,"max":11}'
json all.json '[.processes[0].ranges[] | select(.name == "layer:1") | .level] | unique' '["layer"]'
expect 0 under "$step" --warmup 1 --format json -o warm.json -- "$programs/stepping" 5
json warm.json '.processes[0].steps' '{"source":"ranges","count":5,"warmup":1,"min":5,"median":5,"max":5}'
json warm.json '[.processes[0].sites[].per_step] | add' 5
json all.json '[.processes[0].sites[].per_step] | add' 6.2
json warm.json '.processes[0].syncs.total' 31 # warm-up stays in every other count
expect 0 under "$step" --from 'step:3' --format json -o from.json -- "$programs/stepping" 5
json from.json '.processes[0].steps' '{"source":"ranges","count":5,"warmup":3,"min":5,"median":5,"max":5}'
expect 0 under "$step" --warmup 9 --format json -o none.json -- "$programs/stepping" 5
json none.json '.processes[0].steps' '{"source":"ranges","count":5,"warmup":5,"min":null,"median":null,"max":null}'
expect 0 under "$step" --from 'nothing*' --format json -o never.json -- "$programs/stepping" 5
json never.json '.processes[0].steps.warmup' 5
json never.json '[.warnings[] | select(contains("no range matches"))] | length' 1
expect 0 under --format json -o plain.json -- "$programs/stepping" 5
json plain.json '.processes[0].steps' null
# the first rule wins
expect 0 under --ranges 'step:0=op' "$step" --format json -o rule.json -- "$programs/stepping" 5
json rule.json '.processes[0].steps.count' 4
# allowed syncs keep their place and are listed, unused ones too
json all.json '.processes[0].allowed' '[{"reason":"logging","occurrences":5,"syncs":5},{"reason":"unused","occurrences":1,"syncs":0}]'
expect 0 under -- "$programs/stepping" 5
has err "allowed: logging: 5 syncs in 5 occurrences"
for wrong in layer layer=door =layer; do
  expect 2 under --ranges "$wrong" -- true
  has err "PATTERN=LEVEL"
done
