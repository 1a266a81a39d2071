# SPDX-License-Identifier: Apache-2.0
# A layer that computes something else counts as well as the right one: it must not pass for it.
SYNCCOUNT_PROBE=$build/tests/synccount-probe-swapped-gate
export SYNCCOUNT_PROBE
expect 3 "$synccount" $small --experts 4 --routing uniform
has out "NOT VERIFIED"
has err "not verified"
expect 3 "$synccount" $small --experts 4 --routing uniform --format json
json out '[.runs[].forward] | unique' '[null]'
json out '.runs[0].syncs.per_layer | [.min, .max]' '[12,12]'
expect 3 "$synccount" $small --experts 4 --format markdown --quiet
has out "NOT VERIFIED"
