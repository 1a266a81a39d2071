# SPDX-License-Identifier: Apache-2.0
# The count comes from the trace and from nothing the probe says about itself.
SYNCCOUNT_PROBE=$build/tests/synccount-probe-extra-any
export SYNCCOUNT_PROBE
expect 1 "$synccount" $small --experts 4 --routing uniform --format json -o report.json
json report.json '.runs[0].syncs.per_layer | [.min, .max]' '[12,13]'
json report.json '.runs[0].syncs | [.per_forward, .expected_per_layer]' '[25,12]'
has err "not what it must be"

SYNCCOUNT_PROBE=$build/tests/synccount-probe-missing-sync
expect 1 "$synccount" $small --experts 4 --routing uniform
has out "UNEXPECTED COUNT"
expect 1 "$synccount" $small --experts 4 --routing uniform --format json -o report.json
json report.json '.runs[0].syncs.per_layer | [.min, .max]' '[11,12]'

SYNCCOUNT_PROBE=$build/tests/synccount-probe-device-empty
expect 1 "$synccount" $small --experts 4 --routing uniform --format json -o report.json
json report.json '.runs[1].syncs.per_layer | [.min, .max]' '[1,5]'

SYNCCOUNT_PROBE=$build/tests/synccount-probe-fused-readback
expect 1 "$synccount" $small --experts 4 --routing uniform --format json -o report.json
json report.json '.runs[2].syncs.per_layer | [.min, .max]' '[0,1]'
json report.json '.runs[2].syncs | [.total, .expected_per_layer, .exact]' '[1,0,false]'
