# SPDX-License-Identifier: Apache-2.0
# A machine with little memory, made up. One fp32 layer of this shape: 8 experts x 3 x 256 x 512 x 4 bytes = 12 MiB.
mkdir -p tree/proc
printf 'MemAvailable: 49152 kB\n' >tree/proc/meminfo
SYNCCOUNT_SYSROOT=$work/tree
export SYNCCOUNT_SYSROOT
cat >shape.yaml <<'YAML'
model:
  name: shape
  hidden: 256
  intermediate: 512
  experts: 8
  top_k: 1
  layers: 12
  dtype: fp32
  activation: silu
  w13_layout: packed
  router: {scoring: softmax, renormalize: true}
run:
  tokens: [16]
  variants: [masked, sorted]
YAML
SIMCUDA_MEMORY=1G expect 0 "$synccount" --device sim --config shape.yaml
has out "3 of 12 layers run"
# Layers that were asked for are not cut down behind the user's back.
expect 2 "$synccount" --device sim --config shape.yaml --layers 9
has err "3 layers fit (--layers 3)"
expect 2 "$synccount" --device sim --config shape.yaml --experts 1024
has err "one layer of this shape needs"
# What a layer keeps of its forward counts as well: of 16,384 tokens two outputs of 16 MiB each, beside 1.5 MiB of weights. The device has
# little more than is planned with, so a wrong figure is an error of the probe.
printf 'MemAvailable: 262144 kB\n' >tree/proc/meminfo
sed 's/intermediate: 512/intermediate: 64/' shape.yaml >narrow.yaml
SIMCUDA_MEMORY=320M expect 0 "$synccount" --device sim --config narrow.yaml --tokens 16384
has out "5 of 12 layers run"
# The fused layer's weights and rows come on top, and fit as planned.
SIMCUDA_MEMORY=320M expect 0 "$synccount" --device sim --config narrow.yaml --tokens 16384 --variants masked,fused-nvfp4
has out "4 of 12 layers run"
