# SPDX-License-Identifier: Apache-2.0
# A gate with a program as its source; what it allows is listed, and what it allows in vain.
cat >gate.yaml <<END
version: 1
name: stepping
source:
  command: ['$programs/stepping', '5']
  ranges: ['step:*=step']
  warmup: 1
expect:
  - range: layer*
    measure: syncs_per_occurrence
    equals: 1
    reason: the second one is known
allow:
  - range: layer*
    count: 1
    reason: 'ticket 12'
  - site: nowhere.py:*
    reason: gone
END
expect 0 env LD_LIBRARY_PATH="$simcuda" "$synccount" check gate.yaml
has err "found 1 in 8 occurrences"
has err "allowed       range layer*, at most 1: 8 syncs (ticket 12)"
has err "not needed    site nowhere.py:*: no sync is allowed by this any more, it can go (gone)"
# The command line's program wins over the file's.
expect 1 env LD_LIBRARY_PATH="$simcuda" "$synccount" check gate.yaml --warmup 0 -- "$programs/stepping" 2
sed 's/count: 1/first_only: true/; s/equals: 1/at_most: 1/' gate.yaml >first.yaml
expect 1 env LD_LIBRARY_PATH="$simcuda" "$synccount" check first.yaml --format json -o first.json
json first.json '.expectations[0] | [.compared, .failed]' '[8,6]'

# Steps are one series, though each has its number in its name: one of them is the first, and the others are not.
cat >steps.yaml <<END
version: 1
source:
  command: ['$programs/stepping', '5']
  ranges: ['step:*=step']
expect:
  - measure: syncs_per_step
    at_most: 0
allow:
  - range: step:*
    first_only: true
    reason: it warms up
END
expect 1 env LD_LIBRARY_PATH="$simcuda" "$synccount" check steps.yaml --format json -o steps.json
json steps.json '.expectations[0] | [.compared, .failed, .found.low, .found.high]' '[5,4,0,4]'
json steps.json '.allowed[0].syncs' '10'

# What a gate says of its program, the command line can say otherwise.
cat >child.yaml <<END
version: 1
source:
  command: [sh, -c, 'test -n "\$SYNCCOUNT_TORCH_MODULES" && { "$programs/stepping" 2; true; }']
  follow: false
  torch_modules: true
expect:
  - expect: syncs >= 1
END
expect 3 env LD_LIBRARY_PATH="$simcuda" "$synccount" check child.yaml
has err "no process was traced"
expect 0 env LD_LIBRARY_PATH="$simcuda" "$synccount" check --follow child.yaml

# What was not measured says nothing about an exception.
expect 3 env LD_LIBRARY_PATH="$simcuda" "$synccount" check gate.yaml -- false
has err "NOT MEASURED"
lacks err "it can go"
