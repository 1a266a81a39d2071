#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/parts/modules.sh runs under `synccount run --torch-modules`. Each writes what it knows to --output.

train    6 iterations of a two-layer MoE model with AdamW; backward on autograd's threads
infer    6 forwards without an optimizer; in the third, a layer raises
compile  the same model's dense twin compiled with fullgraph=True, as a whole and layer by layer, with hooks
recompute  as train, with checkpointed layers
cost     the time of a module's call (also run without the option)
profile  torch.profiler over a forward, with CUDA activities
late     torch.profiler first, then the tracer, whose library is named by --tracer
"""

import argparse
import ctypes
import json
import os
import sys
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "probes", "torch"))
import moe_layers  # noqa: E402

EXPERTS, HIDDEN, ITERATIONS = 4, 64, 6


class Block(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.mlp = make()

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self, make, checkpointed=False):
        super().__init__()
        self.layers = nn.ModuleList(Block(make) for _ in range(2))
        self.checkpointed = checkpointed
        self.fail = False

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
            if self.fail:
                raise ValueError("on purpose")
        return x


def moe():
    return moe_layers.VARIANTS["masked"](HIDDEN, 96, EXPERTS)


def dense():
    return nn.Sequential(nn.Linear(HIDDEN, 96), nn.SiLU(), nn.Linear(96, HIDDEN))


def model_and_input(make, checkpointed=False):
    torch.manual_seed(0)
    return Model(make, checkpointed).cuda(), torch.randn(512, HIDDEN, device="cuda")


def train(options, checkpointed=False):
    model, x = model_and_input(moe, checkpointed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)  # the routing stays
    for _ in range(ITERATIONS):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return {"experts": EXPERTS, "iterations": ITERATIONS}


def infer(options):
    model, x = model_and_input(moe)
    raised = 0
    with torch.no_grad():
        for index in range(ITERATIONS):
            model.fail = index == 2
            try:
                model(x)
            except ValueError:
                raised += 1
    torch.cuda.synchronize()
    return {"experts": EXPERTS, "iterations": ITERATIONS, "raised": raised}


def compile_models(options):
    done = []
    for backend in ("eager", "inductor"):
        model, x = model_and_input(dense)
        want = model(x)
        try:
            torch._dynamo.reset()
            whole = torch.compile(model, fullgraph=True, backend=backend)
            torch.testing.assert_close(whole(x), want, rtol=1e-3, atol=1e-3)
            torch._dynamo.reset()
            for layer in model.layers:
                layer.compile(fullgraph=True, backend=backend)
                layer.norm.register_forward_hook(lambda module, inputs, output: output * 1)
            torch.testing.assert_close(model(x), want, rtol=1e-3, atol=1e-3)
            done.append(backend)
        except Exception as problem:  # no compiler on this machine is no fault of ours
            if backend == "eager":
                raise
            print(f"inductor: {type(problem).__name__}: {str(problem)[:200]}", file=sys.stderr)
    (torch.randn(1, device="cuda") > 0).item()
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    return {"backends": done, "graph_breaks": breaks}


def cost(options):
    module = nn.Identity().cuda()
    torch.zeros(1, device="cuda").item()
    times = []
    for _ in range(30):
        start = time.perf_counter_ns()
        for _ in range(2000):
            module(None)
        times.append((time.perf_counter_ns() - start) / 2000)
    return {"call_ns": sorted(times)[len(times) // 2]}


def profiled(model, x):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        model(x)
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())


def profile(options):
    model, x = model_and_input(dense)
    model(x)
    return {"device_events": profiled(model, x)}


def late(options):
    from torch.profiler import ProfilerActivity, profile

    model, x = model_and_input(dense)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        model(x)
        torch.cuda.synchronize()
        os.environ["CUDA_INJECTION64_PATH"] = options.tracer  # we ask for it: it counts at once
        injected = ctypes.CDLL(options.tracer).InitializeInjection()
        model(x)
        torch.cuda.synchronize()
    events = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())
    return {"device_events": events, "injected": injected}


def main():
    what = {
        "train": train,
        "infer": infer,
        "compile": compile_models,
        "recompute": lambda options: train(options, True),
        "cost": cost,
        "profile": profile,
        "late": late,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=what)
    parser.add_argument("--output", required=True)
    parser.add_argument("--tracer")
    options = parser.parse_args()
    result = what[options.what](options)
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(dict(result, torch=torch.__version__), file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
