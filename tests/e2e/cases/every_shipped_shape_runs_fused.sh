# SPDX-License-Identifier: Apache-2.0
# Each shipped shape chooses activation, layout and top-k of all three variants. Widths are cut down: the real ones take a GPU.
for file in "$source"/configs/*.yaml; do
  name=$(basename "$file" .yaml)
  grep -q "^model:" "$file" || continue # a gate
  for quant in w4a4 w4a16; do
    expect 0 "$synccount" --device sim --config "$name" --experts 8 --layers 1 --hidden 64 --intermediate 96 --tokens 24 \
      --act-quant $quant --format json
    json out '[.runs[] | .variant]' '["masked","sorted","fused-nvfp4"]'
    json out '[.runs[] | .verified.ok] | unique' '[true]'
    json out '[.runs[] | .activation] | unique | length' '1'
    json out '.runs[2] | [.act_quant, .syncs.total, .verified.tokens]' "[\"$quant\",0,16]"
  done
done
# The activations of the shapes are those that a fused layer must know.
expect 0 "$synccount" --device sim --config gpt-oss-20b --experts 8 --layers 1 --hidden 64 --intermediate 96 --tokens 24 --format json
json out '.runs[2].activation' '"swigluoai"'
json out '[.warnings[] | select(contains("fused-nvfp4 has them too"))] | length' '1'
expect 0 "$synccount" --device sim --config nemotron-3-nano-30b-a3b --experts 8 --layers 1 --hidden 64 --intermediate 96 --tokens 24 --format json
json out '.runs[2].activation' '"relu2_no_mul"'
