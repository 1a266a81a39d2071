#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HuggingFace MoE models from small random configurations, with every expert back end that this version of transformers
has. Each case warms up, then runs once inside an NVTX range "hf:<model>:<back end>:<mode>" under PyTorch's own sync
warnings, whose number and lines go to a JSON file, and between cudaProfilerStart and cudaProfilerStop. To be run under

    synccount run --torch-modules --capture-range cudaProfilerApi --keep-traces traces --format json -o report.json -- \
        python3 tests/gpu/hf_moe.py --output hf.json

--device cpu builds and runs the models without counting anything.
"""

import argparse
import collections
import json
import os
import sys
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is loaded from anywhere

import torch
import transformers

SYNC_WARNING = "synchronizing CUDA operation"
LAYERS, EXPERTS, TOP_K, TOKENS = 3, 8, 2, 64
SMALL = dict(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=LAYERS,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_experts_per_tok=TOP_K,
    max_position_embeddings=128,
    use_cache=False,
    tie_word_embeddings=False,
)
MODELS = {
    "qwen3": ("Qwen3Moe", dict(SMALL, num_experts=EXPERTS, moe_intermediate_size=32, head_dim=16)),
    "mixtral": ("Mixtral", dict(SMALL, num_local_experts=EXPERTS)),
}
BACK_ENDS = ("eager", "batched_mm", "grouped_mm")


def build(model, back_end, device):
    prefix, values = MODELS[model]
    make = getattr(transformers, prefix + "Config")
    if hasattr(make(**values), "_experts_implementation"):
        config = make(**values, experts_implementation=back_end)
    elif back_end == "eager":  # older versions have this one, and no name for it
        config = make(**values)
    else:
        return None
    torch.manual_seed(0)
    network = getattr(transformers, prefix + "ForCausalLM")(config).to(device=device, dtype=torch.bfloat16)
    if getattr(network.config, "_experts_implementation", "eager") != back_end:
        return None
    return network


def forward(network, tokens):
    with torch.no_grad():
        return network(input_ids=tokens).logits


def train(network, tokens):
    network.zero_grad(set_to_none=True)
    loss = network(input_ids=tokens, labels=tokens).loss
    loss.backward()
    return loss.detach()


def warned_lines(caught):
    lines = collections.Counter()
    for warning in caught:
        if SYNC_WARNING in str(warning.message):
            lines[f"{warning.filename}:{warning.lineno}"] += 1
    return dict(lines)


def measure(model, back_end, mode, device):
    network = build(model, back_end, device)
    name = f"hf:{model}:{back_end}:{mode}"
    if network is None:
        return {"range": name, "skipped": "this version of transformers has no such expert back end"}
    run = train if mode == "backward" else forward
    network.train(mode == "backward")
    tokens = torch.randint(0, 256, (1, TOKENS), generator=torch.Generator().manual_seed(1)).to(device)
    with torch.autograd.set_multithreading_enabled(False):  # so that the range holds backward's calls as well
        for _ in range(2):
            result = run(network, tokens)
        if not torch.isfinite(result).all():
            raise SystemExit(f"{name}: the model computes what is no number")
        case = {
            "range": name,
            "model": model,
            "back_end": back_end,
            "mode": mode,
            "layers": LAYERS,
            "module": type(network).__name__,
        }
        if device == "cpu":
            return case
        torch.cuda.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            torch.cuda.profiler.start()  # only this is counted: --capture-range cudaProfilerApi
            try:
                torch.cuda.nvtx.range_push(name)
                run(network, tokens)
                torch.cuda.nvtx.range_pop()
            finally:
                torch.cuda.profiler.stop()
                torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    lines = warned_lines(caught)
    return dict(case, warnings=sum(lines.values()), lines=lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--output", help="the JSON document (default: stdout)")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("hf_moe.py: PyTorch sees no CUDA device here", file=sys.stderr)
        return 3
    cases = []
    for model in MODELS:
        for back_end in BACK_ENDS:
            for mode in ("forward", "backward") if model == "qwen3" else ("forward",):
                try:
                    cases.append(measure(model, back_end, mode, options.device))
                except (NotImplementedError, RuntimeError, ValueError, ImportError) as problem:
                    text = f"{type(problem).__name__}: {str(problem).splitlines()[0][:160] if str(problem) else ''}"
                    cases.append({"range": f"hf:{model}:{back_end}:{mode}", "skipped": text})
    document = json.dumps(
        {"torch": torch.__version__, "transformers": transformers.__version__, "cases": cases}, indent=1
    )
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(document + "\n")
    else:
        print(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
