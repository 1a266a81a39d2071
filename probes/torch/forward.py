#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small model of MoE layers, called again and again: something to look at.

    synccount run --torch-modules --warmup 2 -- python3 probes/torch/forward.py masked --experts 8 --layers 4

masked waits E + 2 * hit times a layer, sorted once (see moe_layers.py). Prints what it did as one line of JSON. Each forward
is a range "forward", and lies between cudaProfilerStart and cudaProfilerStop, with what came before left out.
"""
import argparse
import json
import sys

import torch
from torch import nn

from moe_layers import VARIANTS, hit_experts, waits_expected


class Block(nn.Module):
    """Norm, MoE layer, residual."""

    def __init__(self, variant, hidden, intermediate, experts, top_k):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.moe = VARIANTS[variant](hidden, intermediate, experts, top_k)

    def forward(self, x):
        return x + self.moe(self.norm(x))


class Model(nn.Module):
    def __init__(self, layers, *shape):
        super().__init__()
        self.layers = nn.ModuleList(Block(*shape) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def hits(model, x):
    """How many experts each layer uses. Waits for the device."""
    found = []
    with torch.no_grad():
        for layer in model.layers:
            found.append(hit_experts(layer.moe, layer.norm(x)))
            x = layer(x)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", choices=sorted(VARIANTS))
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--intermediate", type=int, default=1408)
    parser.add_argument("--top-k", type=int, default=1)
    parser.add_argument("--forwards", type=int, default=20)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("forward.py: PyTorch sees no CUDA device here", file=sys.stderr)
        return 3
    torch.manual_seed(0)
    model = Model(options.layers, options.variant, options.hidden, options.intermediate, options.experts, options.top_k)
    model = model.cuda().eval()
    x = torch.randn(options.tokens, options.hidden, device="cuda")
    hit = hits(model, x)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    with torch.no_grad():
        for _ in range(options.forwards):
            torch.cuda.nvtx.range_push("forward")
            model(x)
            torch.cuda.nvtx.range_pop()
    torch.cuda.profiler.stop()
    torch.cuda.synchronize()
    print(json.dumps({"variant": options.variant, "experts": options.experts, "hit": hit, "forwards": options.forwards,
                      "waits": [waits_expected(options.variant, options.experts, n) for n in hit]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
