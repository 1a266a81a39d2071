#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts PyTorch's own synchronisation warnings of one MoE layer, to be held against the tracer's count of that forward.

Each case is one layer: warmed up, then one forward inside an NVTX range named like "torch:masked:E=8:T=4096", under
torch.cuda.set_sync_debug_mode("warn"). Run it under the tracer by plain LD_PRELOAD; it knows nothing of it:

    SYNCCOUNT_OUTPUT=traces LD_PRELOAD=libsynccount.so python3 probes/torch/count_warnings.py --output warnings.json
"""
import argparse
import json
import sys
import warnings

import torch

from moe_layers import VARIANTS, hit_experts, waits_expected

SYNC_WARNING = "synchronizing CUDA operation"


def numbers(text):
    values = [int(part) for part in text.split(",")]
    if any(value < 1 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r} holds a number below 1")
    return values


def measure(variant, experts, tokens, options):
    torch.manual_seed(options.seed)
    layer = VARIANTS[variant](options.hidden, options.intermediate, experts, options.top_k).cuda().eval()
    x = torch.randn(tokens, options.hidden, device="cuda")
    name = f"torch:{variant}:E={experts}:T={tokens}"
    with torch.no_grad():
        for _ in range(3):
            layer(x)
        hit = hit_experts(layer, x)
        torch.cuda.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                torch.cuda.nvtx.range_push(name)
                layer(x)
                torch.cuda.nvtx.range_pop()
            finally:
                torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()
    count = sum(SYNC_WARNING in str(warning.message) for warning in caught)
    return {
        "variant": variant,
        "experts": experts,
        "tokens": tokens,
        "hit": hit,
        "range": name,
        "expected": waits_expected(variant, experts, hit),
        "warnings": count,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experts", type=numbers, default=[4, 8, 16])
    parser.add_argument("--tokens", type=numbers, default=[4096], help="4096 fill every expert; 1 is decode")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--intermediate", type=int, default=1408)
    parser.add_argument("--top-k", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", help="the JSON document (default: stdout)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("count_warnings.py: PyTorch sees no CUDA device here", file=sys.stderr)
        return 3
    # The first use of the mode prints a notice of its own, once: not one of the warnings that are counted.
    cases = [
        measure(variant, experts, tokens, options)
        for tokens in options.tokens
        for experts in options.experts
        for variant in VARIANTS
    ]
    document = json.dumps(
        {"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "cases": cases}, indent=2
    )
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(document + "\n")
    else:
        print(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
