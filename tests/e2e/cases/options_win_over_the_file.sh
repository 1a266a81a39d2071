# SPDX-License-Identifier: Apache-2.0
cat >shape.yaml <<'YAML'
model:
  name: shape
  hidden: 64
  intermediate: 96
  experts: 4
  top_k: 2
  layers: 6
  moe_layers: 5
  dtype: bf16
  activation: silu
  w13_layout: packed
  router: {scoring: sigmoid, renormalize: true, scale: 2.5}
  biases: true
  shared_experts: {count: 1, intermediate: 96}
run:
  experts: [4, 8]
  tokens: [32]
  routing: uniform
  seed: 7
YAML
expect 0 "$synccount" --device sim --config shape.yaml --format json
json out '[.runs[0] | .experts, .top_k, .tokens, .hidden, .intermediate, .layers, .dtype, .routing, .seed]' '[4,2,32,64,96,5,"bf16","uniform",7]'
json out '[.runs[] | .experts] | unique' '[4,8]'
# What the layer does not run of the model is told.
json out '[.warnings[] | select(startswith("shape "))] | length' '3'
expect 0 "$synccount" --device sim --config shape.yaml --format json --experts 8 --top-k 1 --tokens 16 --hidden 32 --intermediate 48 --layers 2 \
  --dtype fp32 --routing one-expert --seed 9 --variants sorted
json out '[.runs[0] | .variant, .experts, .top_k, .tokens, .hidden, .intermediate, .layers, .dtype, .routing, .seed]' '["sorted",8,1,16,32,48,2,"fp32","one-expert",9]'
expect 0 "$synccount" --device sim --config shape.yaml --experts 8 --layers 2
has out "2 of 5 layers run"
expect 2 "$synccount" --device sim --config shape.yaml --layers 6
has err "6 layers were asked for, but shape has 5 MoE layers"
