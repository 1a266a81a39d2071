# SPDX-License-Identifier: Apache-2.0
cat >ranks <<'END'
for rank in 0 1 2; do RANK=$rank LOCAL_RANK=$rank "$1" 2 & done
wait
END
expect 0 under --keep-traces kept --format json -o report.json -- sh ranks "$programs/stepping"
json report.json '.ranks.syncs' '{"total":51,"min":16,"max":19,"usual":16}'
json report.json '[.ranks.each[] | [.rank, .processes, .syncs]]' '[[0,1,16],[1,1,19],[2,1,16]]'
json report.json '.ranks.waits_most' null # simulated: no times
json report.json '[.processes[] | .local_rank] | sort' '[0,1,2]'
expect 0 "$synccount" report kept
has out "3 ranks"
has out "rank 1 has 19, the others have 16"
# other launchers' names
for variable in OMPI_COMM_WORLD_RANK SLURM_PROCID; do
  expect 0 under --format json -o one.json -- env $variable=4 "$programs/stepping" 2
  json one.json '.processes[0].rank' 4
done
# without ranks there is nothing to compare
expect 0 under --format json -o one.json -- "$programs/stepping" 2
json one.json '.ranks' null
