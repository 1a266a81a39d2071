# SPDX-License-Identifier: Apache-2.0
# hit < E: the exact count is E + 2 hit, not 3E.
expect 0 "$synccount" $small --experts 8 --routing one-expert --format json -o report.json
json report.json '.runs[0] | [.variant, .hit, .syncs.per_layer.min, .syncs.per_layer.max, .syncs.bound_per_layer]' '["masked",[1,1],10,10,24]'
json report.json '.runs[1] | [.variant, .syncs.per_layer.min, .syncs.per_layer.max]' '["sorted",1,1]'
json report.json '.runs[0].syncs.by_op' '{"any":16,"nonzero":2,"mask-index":2}'

# The table by expert tells the ones without tokens.
expect 0 "$synccount" $small --experts 4 --variants masked --routing one-expert --per-expert
has out "E+2*hit"
expect 0 "$synccount" $small --experts 4,8,16 --routing one-expert --format json -o report.json
json report.json '[.laws[] | select(.variant=="masked") | .text]' '["1.00 E + 2"]'
