# SPDX-License-Identifier: Apache-2.0
# 5 syncs a layer in the first step, 2 in each other one, and 1 a step that is allowed.
# gate OPTIONS... -- PROGRAM...: on the simulated device, as the user's program finds it.
gate() {
  env LD_LIBRARY_PATH="$simcuda" "$synccount" check "$@"
}
expect 0 gate --range 'layer*' --max-syncs 2 --warmup 1 -- "$programs/stepping" 5
has err "found 2 in 8 occurrences"
[ ! -s out ] || fail "standard output is the program's"
expect 0 gate --ranges 'step:*=step' --range 'layer*' --max-syncs 2 --warmup 1 -- "$programs/stepping" 5
has err "found 2 in 8 occurrences"
has err "2 more were warm-up"
expect 1 gate --range 'layer*' --max-syncs 1 -- "$programs/stepping" 5
has err "step:0/layer:0: 5 in one occurrence"
has err "(cudaStreamSynchronize, explicit)"
expect 0 gate --from 'step:1' --range 'layer*' --max-syncs 2 -- "$programs/stepping" 5
expect 0 gate --ranges 'step:*=step' --warmup 1 --expect 'syncs_per_step == 4' --expect 'syncs == 16' -- "$programs/stepping" 5
has err "allowed       range synccount.allow:logging: 5 syncs"
has err "not needed    range synccount.allow:unused"
expect 0 gate --expect 'class(explicit).syncs == 26' --expect 'class(copy).syncs == 0' -- "$programs/stepping" 5

# Nothing selected, nothing passed.
expect 3 gate --range 'lager*' --max-syncs 1 -- "$programs/stepping" 2
has err "no range matches lager*"
expect 3 gate --expect 'syncs_per_step <= 9' -- "$programs/stepping" 2
has err "the program marked no steps"
expect 3 gate --range 'synccount.allow:unused' --max-syncs 1 -- "$programs/stepping" 2
has err "gave the device no work"
expect 3 gate --max-syncs 9 -- true
has err "no process was traced"

# The program's failure is told, and never mistaken for ours.
expect 3 gate --max-syncs 99 -- sh -c "'$programs/stepping' 2; exit 1"
has err "NOT MEASURED: program failed with 1"
expect 3 gate --max-syncs 1 -- sh -c "'$programs/stepping' 2; exit 1"
has err "FAILED        syncs <= 1"
expect 3 gate --max-syncs 99 -- "$programs/stepping" 2 die
has err "program was ended by signal 9"
expect 3 gate --max-syncs 9 -- /nowhere/program
has err "cannot run '/nowhere/program'"

# Ranks are told apart; each process is compared on its own.
ranks="for rank in 0 1 2; do RANK=\$rank '$programs/stepping' 2 & done; wait"
expect 1 gate --max-syncs 14 -- sh -c "$ranks"
has err "rank 1"
expect 0 gate --max-syncs 14 --rank 0 -- sh -c "$ranks"
expect 1 gate --max-syncs 14 --rank 1 -- sh -c "$ranks"
expect 3 gate --max-syncs 14 --rank 7 -- sh -c "$ranks"
has err "no process matches rank 7"

# Where all was warm-up nothing was measured: a sum over nothing is no 0.
expect 3 gate --expect 'syncs <= 99' --from nowhere -- "$programs/stepping" 5
has err "the warm-up of process"
expect 3 gate --expect 'range(layer*).syncs <= 99' --from nowhere -- "$programs/stepping" 5
has err "all 10 occurrences were warm-up"
expect 3 gate --expect 'range(layer*).syncs <= 99' --warmup 100 -- "$programs/stepping" 5
expect 3 gate --max-syncs 99 --warmup 5 --ranges 'step:*=step' -- "$programs/stepping" 5
has err "all 5 steps of process"
expect 0 gate --max-syncs 99 --warmup 4 --ranges 'step:*=step' -- "$programs/stepping" 5
has err "found 4 in 1 process"
