# SPDX-License-Identifier: Apache-2.0
# SYNCCOUNT_DORMANT=1 is for programs that are attached to; what we start ourselves is counted from its start.
SYNCCOUNT_DORMANT=1
export SYNCCOUNT_DORMANT
expect 0 under --format json -o run.json -- "$programs/stepping" 2
json run.json '.processes[0].syncs.total' 16
json run.json '.processes[0].attached_late' false
expect 0 "$synccount" $small --experts 4 --variants sorted --format json -o main.json
json main.json '.runs[0].syncs.per_layer.max' 1
