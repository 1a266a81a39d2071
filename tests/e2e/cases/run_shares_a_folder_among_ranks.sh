# SPDX-License-Identifier: Apache-2.0
# mpirun starts one synccount a rank: they share the folder of --keep-traces. A stand-in sets what launchers set.
cat >mpirun <<'END'
#!/bin/sh
# mpirun RANKS RANK-VARIABLE COMMAND...
ranks=$1 variable=$2 pids= status=0 i=0
shift 2
while [ "$i" -lt "$ranks" ]; do
  env "$variable=$i" "$@" &
  pids="$pids $!" i=$((i + 1))
done
for pid in $pids; do
  wait "$pid" || status=$?
done
exit "$status"
END
chmod +x mpirun
LD_LIBRARY_PATH=$simcuda
export LD_LIBRARY_PATH
# each rank has a count of its own, so that one in the wrong place shows
cat >program <<END
#!/bin/sh
"$programs/stepping" \$((OMPI_COMM_WORLD_RANK + 2))
END
chmod +x program
job=PMIX_NAMESPACE=prterun-host-7@1
expect 0 env $job ./mpirun 4 OMPI_COMM_WORLD_RANK "$synccount" run -q --ranges 'step:*=step' --keep-traces kept -- ./program
has err "the traces of rank 2 are kept in kept; see all ranks with: synccount report kept"
expect 0 "$synccount" report --format json -o all.json kept
json all.json '[.ranks.each[] | [.rank, .processes, .syncs]]' '[[0,1,16],[1,1,21],[2,1,26],[3,1,31]]'
json all.json '.ranks.syncs.total' 94
json all.json '[.processes[].steps.count]' '[2,3,4,5]' # read as the run asked for
json all.json '[.processes[].pid] | unique | length' 4
json all.json '.device.simulated' true
# one rank of it
expect 0 "$synccount" report --format json -o one.json kept/rank-3
json one.json '[.processes[] | [.rank, .syncs.total]]' '[[3,31]]'
# a rank that was killed keeps the others' report
mv kept/rank-1/session.json session
expect 0 "$synccount" report --format json -o all.json kept
json all.json '[.processes[].syncs.total] | sort' '[16,21,26,31]'
json all.json '[.warnings[] | select(contains("kept/rank-1: the synccount of this rank was killed, or still runs"))] | length' 1
mv session kept/rank-1/session.json

# a used folder is refused, by the same job's ranks, by another job and by a run of its own
expect 2 env $job OMPI_COMM_WORLD_RANK=3 "$synccount" run --keep-traces kept -- touch ran
has err "already holds traces of rank 3 of this job"
expect 2 env PMIX_NAMESPACE=prterun-host-8@1 OMPI_COMM_WORLD_RANK=4 "$synccount" run --keep-traces kept -- touch ran
has err "already holds traces of another job (job-prterun-host-7@1, this one is job-prterun-host-8@1)"
expect 2 "$synccount" run --keep-traces kept -- touch ran
has err "already holds traces"
expect 2 "$synccount" $small --experts 4 --keep-traces kept
has err "already holds traces"
expect 0 "$synccount" run --keep-traces single -- "$programs/stepping" 2
expect 2 env $job OMPI_COMM_WORLD_RANK=0 "$synccount" run --keep-traces single -- touch ran
has err "already holds traces (s"
[ ! -e ran ] || fail "a program ran"

# many at once, none of them lost: what other launchers name the job by
round=0
for names in "RANK TORCHELASTIC_RUN_ID=a/b" "PMIX_RANK PMIX_ID=7" "PMI_RANK PMI_JOBID=9" "SLURM_PROCID SLURM_JOB_ID=5" \
  "MV2_COMM_WORLD_RANK SYNCCOUNT_JOB=mine" "OMPI_COMM_WORLD_RANK OMPI_MCA_ess_base_jobid=1"; do
  round=$((round + 1)) variable=${names%% *} id=${names#* }
  case $id in PMIX_ID=*) id=PMIX_ID=job.7.0 ;; esac
  expect 0 env "$id" ./mpirun 6 "$variable" "$synccount" run -q --keep-traces "round-$round" -- "$programs/threads" 1 3
  expect 0 "$synccount" report --format json "round-$round"
  json out '[.processes[] | [.rank, .syncs.total]]' '[[0,3],[1,3],[2,3],[3,3],[4,3],[5,3]]'
done
[ -d round-1/job-a_b ] || fail "no folder of the job a/b: $(ls round-1)"
[ -d round-2/job-job.7 ] || fail "no folder of the job of PMIX_ID: $(ls round-2)"
# torchrun starts its workers again: the same ranks, another life
expect 0 env TORCHELASTIC_RUN_ID=a/b RANK=2 TORCHELASTIC_RESTART_COUNT=1 "$synccount" run -q --keep-traces round-1 -- \
  "$programs/threads" 1 5
expect 0 "$synccount" report --format json round-1
json out '[.ranks.each[] | [.rank, .processes, .syncs]] | .[2]' '[2,2,8]'

# ranks whose job nothing tells: one gets the folder, whoever it is, the others are told what to do
expect 2 env ./mpirun 4 PMI_RANK "$synccount" run -q --keep-traces untold -- "$programs/threads" 1 3
has err "SYNCCOUNT_JOB"
expect 0 "$synccount" report --format json untold
json out '[.processes[].syncs.total]' '[3]'
# and so for two that are no ranks: one folder never holds two sessions
expect 2 ./mpirun 4 NOTHING "$synccount" run -q --keep-traces plain -- "$programs/threads" 1 3
expect 0 "$synccount" report --format json plain
json out '[.processes[].syncs.total]' '[3]'
# a program that did not start leaves the folder as good as new
expect 127 "$synccount" run --keep-traces again -- ./no-such-program
expect 0 "$synccount" run -q --keep-traces again -- "$programs/threads" 1 3
