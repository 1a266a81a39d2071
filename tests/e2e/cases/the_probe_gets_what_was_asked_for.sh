# SPDX-License-Identifier: Apache-2.0
# Arguments and environment of both kinds of pass, as the probe sees them.
# The shell that plays the probe here has leaks of its own.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS
cat >probe <<'P'
#!/bin/sh
{ echo "ARGS $*"; env | grep -E '^(LD_PRELOAD|LD_LIBRARY_PATH|SYNCCOUNT_|SIMCUDA_|CUDA_INJ|NVTX_INJ)'; } >>"$RECORD"
exit 3
P
chmod +x probe
RECORD=$work/record
SYNCCOUNT_PROBE=$work/probe
export RECORD SYNCCOUNT_PROBE
# Some harmless library in the role of the user's own preload. A sanitizer does not bear one before its own.
mine=
[ -n "${SC_SANITIZE:-}" ] || mine=$(ldconfig -p 2>/dev/null | sed -n 's/.*libm\.so\.6.* => //p' | head -1)
LD_PRELOAD=$mine CUDA_INJECTION64_PATH=/x NVTX_INJECTION64_PATH=/y LD_LIBRARY_PATH=/opt/mine \
  expect 3 "$synccount" --device sim --sim-round-trip 0.5ms --experts 4,8 --top-k 2 --tokens 1,16 --layers 3 --hidden 64 --intermediate 96 \
  --dtype bf16 --routing skewed --seed 5 --forwards 4 --variants sorted
has record "--pass counts"
has record "--variants sorted --experts 4,8 --tokens 1,16 --layers 3 --model-layers 3 --hidden 64 --intermediate 96 --top-k 2 --dtype bf16"
has record "--activation silu --renormalize 1 --routing skewed --seed 5 --forwards 4"
lacks record "--alpha"
lacks record "--act-quant"
[ -z "$mine" ] || has record "LD_PRELOAD=$mine:" # the user's own preload stays, ours comes behind it
grep -q "^LD_PRELOAD=.*libsynccount.so$" record || fail "the tracer is not preloaded"
has record "LD_LIBRARY_PATH=$build/bin/../lib/simcuda:/opt/mine"
has record "SIMCUDA_ROUND_TRIP=500000ns"
# The tracer sets these to itself, which it would not do if another tool's were still there.
lacks record "CUDA_INJECTION64_PATH=/x"
lacks record "NVTX_INJECTION64_PATH=/y"

# What a shape says of the fused layer, and nothing that it does not say.
cat >shape.yaml <<'YAML'
model: {name: shape, hidden: 64, intermediate: 96, experts: 4, top_k: 2, layers: 6, dtype: bf16, activation: swigluoai,
  alpha: 1.702, beta: null, w13_layout: interleaved, biases: true, router: {scoring: softmax, renormalize: true}}
YAML
: >record
expect 3 "$synccount" --device sim --config shape.yaml --act-quant w4a16 --variants fused-nvfp4
has record "--activation swigluoai --alpha 1.702 --renormalize 1"
has record "--act-quant w4a16 --nvfp4-path portable --w13-layout interleaved --biases 1"
lacks record "--beta"
lacks record "--limit"

# The ruler is untraced, even if the user traces everything.
: >record
LD_PRELOAD=$build/lib/libsynccount.so expect 3 "$synccount" ruler --device sim
has record "--pass ruler"
lacks record "libsynccount.so"
