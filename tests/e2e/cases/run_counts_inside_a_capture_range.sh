# SPDX-License-Identifier: Apache-2.0
under_capture() {
  under --capture-range cudaProfilerApi --ranges 'step:*=step' --format json -o report.json "$@"
}
expect 0 under_capture -- "$programs/stepping" 6 capture 2 3
json report.json '.processes[0].syncs.total' 10
json report.json '.processes[0].steps.count' 2
json report.json '[.processes[0].ranges[] | select(.depth == 0) | .name]' '["step:2","step:3"]'
# never stopped: to the end
expect 0 under_capture -- "$programs/stepping" 6 capture 4 9
json report.json '.processes[0].syncs.total' 10
# never started: not measured, which is no 0
expect 3 under_capture -- "$programs/stepping" 6
json report.json '.processes[0].measured' false
json report.json '.processes[0].syncs' null
json report.json '[.warnings[] | select(contains("never called cudaProfilerStart"))] | length' 1
# everything was recorded: the whole can be counted later
expect 0 under --keep-traces kept --format json -o report.json -- "$programs/stepping" 6 capture 2 3
json report.json '.processes[0].syncs.total' 36
expect 0 "$synccount" report --capture-range cudaProfilerApi --format json kept
json out '.processes[0].syncs.total' 10
expect 2 under --capture-range nvtx -- true
has err "cudaProfilerApi"
