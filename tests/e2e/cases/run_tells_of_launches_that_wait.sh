# SPDX-License-Identifier: Apache-2.0
# A launch that finds the queue full waits for room: told, and no sync.
SIMCUDA_QUEUE=700
export SIMCUDA_QUEUE
expect 0 under --format json -o full.json -- "$programs/filling" 900 300
json full.json '.processes[0].syncs.total' 2
json full.json '.processes[0].syncs.queue_waits > 100' true
json full.json '[.warnings[] | select(contains("waited for room in the device"))] | length' 1
json full.json '.processes[0].syncs.launches' 902
# Never more than 100 outstanding.
expect 0 under --format json -o room.json -- "$programs/filling" 900 10 100
json room.json '.processes[0].syncs.queue_waits' 0
json room.json '[.warnings[] | select(contains("waited for room"))] | length' 0
SIMCUDA_QUEUE=many
expect 3 under -- "$programs/filling" 1 0
has err "SIMCUDA_QUEUE=many was not understood"
