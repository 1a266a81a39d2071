# SPDX-License-Identifier: Apache-2.0
expect 0 under --ranges 'step:*=step' --warmup 1 --keep-traces kept --format json -o run.json -- "$programs/forking" exec
expect 0 "$synccount" report --format json -o again.json kept
equal run.json again.json
rm -r kept
for format in text markdown; do
  rm -rf kept
  expect 0 under --ranges 'step:*=step' --warmup 1 --from 'step:2' --keep-traces kept --format $format -o run.out -- "$programs/stepping" 4
  has err "synccount report kept"
  expect 0 "$synccount" report --format $format -o again.out kept
  equal run.out again.out
done
# what a run could not measure, and why, is kept as well
expect 3 under --keep-traces nothing -o run.out -- true
expect 3 "$synccount" report -o again.out nothing
equal run.out again.out
# options replace the run's own
expect 0 "$synccount" report --format json --ranges 'layer:*=step' kept
json out '.processes[0].steps.count' 8
# a folder is used once
expect 2 under --keep-traces kept -- touch ran
[ ! -e ran ] || fail "the program ran"
has err "already holds traces"
# one trace of a killed process among others must not cost their report
printf 'SYNCTRC' >kept/synccount-broken.sctrace
jq '.traces += ["synccount-broken.sctrace"]' kept/session.json >session && mv session kept/session.json
expect 0 "$synccount" report --format json kept
json out '.processes | length' 1
json out '[.warnings[] | select(contains("synccount-broken"))] | length' 1
