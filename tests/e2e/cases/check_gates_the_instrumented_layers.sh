# SPDX-License-Identifier: Apache-2.0
# The shipped gate passes with sorted dispatch and fails with the masked loop, by the very same file.
# shellcheck disable=SC2086
expect 0 "$synccount" check one-sync-per-layer $small
has out "SIMULATED: the CUDA device was simulated"
has out "passed        syncs_per_layer == 1: found 1 in 3 runs"
has out "passed: 1 expectation as asked (SIMULATED)"
expect 0 "$synccount" check "$source/configs/one-sync-per-layer.yaml" $small --format json
json out '[.schema, .verdict, .simulated, .gate]' '["synccount/check/1","passed",true,"one sync per layer"]'
json out '.expectations[0] | [.measure, .comparison, .low, .found.low, .found.high, .compared, .failed]' '["syncs_per_layer","==",1,1,1,3,0]'
expect 1 "$synccount" check one-sync-per-layer $small --variants masked --routing uniform
has out "op any: 16 a layer"
has out "op nonzero: 16 a layer"
has out "op mask-index: 16 a layer"
has out "masked, E = 16, 64 tokens: 48"
has out "it is expected because: one read-back of the group bounds"
expect 1 "$synccount" check one-sync-per-layer $small --variants masked --routing uniform --experts 4 --format json
json out '.expectations[0].syncs | map([.op, .most, .total]) | sort' '[["any",4,8],["mask-index",4,8],["nonzero",4,8]]'

# Only what something is expected of is run, and an expectation of the command line joins the file's.
expect 0 "$synccount" check $small --experts 4,8 --expect 'sorted.syncs_per_layer == 1' --expect 'fused-nvfp4.syncs == 0' --keep-traces kept
has out "found 1 in 2 runs"
has out "found 0 in 2 runs"
expect 0 "$synccount" report --format json kept
json out '[.runs[].variant] | unique' '["fused-nvfp4","sorted"]'
expect 0 "$synccount" check three-layers $small --experts 4
has out "masked.syncs_per_layer == expected"

# A sorted layer that decides emptiness on the device: 1 + E.
SYNCCOUNT_PROBE=$build/tests/synccount-probe-device-empty
export SYNCCOUNT_PROBE
expect 1 "$synccount" check $small --experts 4 --routing uniform --expect 'sorted.syncs_per_layer == 1'
has out "sorted, E = 4, 64 tokens: 1 to 5"
has out "op (outside every op): 2 a layer, 4 in all"
has out "op bounds: 1 a layer, 2 in all"
# A layer that computes something else has no count to speak of.
SYNCCOUNT_PROBE=$build/tests/synccount-probe-swapped-gate
expect 3 "$synccount" check $small --experts 4 --routing uniform --expect 'masked.syncs_per_layer == expected'
has out "NOT VERIFIED"
