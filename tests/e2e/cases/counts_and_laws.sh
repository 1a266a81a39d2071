# SPDX-License-Identifier: Apache-2.0
# The seed's claim on every device: 3E for the masked loop when every expert is hit, 1 for sorted dispatch, whatever E.
expect 0 "$synccount" $small --experts 4,8,16 --routing uniform --forwards 2 --format json -o report.json
json report.json '.schema' '"synccount/report/1"'
json report.json '[.runs[] | select(.variant=="masked") | .syncs.per_layer | [.min, .max]]' '[[12,12],[24,24],[48,48]]'
json report.json '[.runs[] | select(.variant=="sorted") | .syncs.per_layer | [.min, .max]]' '[[1,1],[1,1],[1,1]]'
json report.json '[.runs[] | select(.variant=="masked") | .syncs.per_forward]' '[24,48,96]'
json report.json '[.runs[] | select(.variant=="masked") | .syncs.expected_per_layer == .syncs.per_layer.mean and .syncs.bound_per_layer == 3 * .experts] | all' 'true'
json report.json '[.runs[] | select(.variant=="fused-nvfp4") | .syncs.per_layer | [.min, .max]]' '[[0,0],[0,0],[0,0]]'
json report.json '[.runs[] | select(.variant=="fused-nvfp4") | .syncs |
  .total, .read_backs, .per_forward, .expected_per_layer, .exact] | unique' '[true,0]'
json report.json '[.runs[] | select(.variant=="fused-nvfp4") | .syncs | .launches > 0 and .bound_per_layer == null] | all' 'true'
json report.json '[.laws[] | [.variant, .text]]' '[["masked","3.00 E + 0"],["sorted","0.00 E + 1"],["fused-nvfp4","0.00 E + 0"]]'
json report.json '[.runs[] | select(.variant=="sorted") | .output_matches_masked] | all' 'true'
json report.json '[.runs[] | .verified.tokens == 16 and .verified.cosine > 0.9999] | all' 'true'
json report.json '[.runs[] | .forwards] | unique' '[2]'
json report.json '[.runs[] | .hit == [.experts, .experts]] | all' 'true'
json report.json '[.runs[] | .syncs | (.by_class | add) == .per_forward * 2] | all' 'true'
json report.json '[.runs[] | select(.variant=="masked") | .syncs.by_op | .any == .nonzero and .any == ."mask-index"] | all' 'true'
# What rounds is not compared bit by bit, and says so.
json report.json '[.runs[] | select(.variant=="fused-nvfp4") | .output_matches_masked, .not_comparable] | unique' \
  '[null,"NVFP4 rounds weights and activations"]'
json report.json '[.runs[] | [.variant, .act_quant, .nvfp4_path]] | unique' \
  '[["fused-nvfp4","w4a4","portable"],["masked",null,null],["sorted",null,null]]'
json report.json '.losses' '{"records":0,"chunks":0}'
