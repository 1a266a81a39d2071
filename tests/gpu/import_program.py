#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program with a known number of waits in each range, to be seen by several tracers.

    import_program.py [--profile TRACE.json.gz]     under PyTorch's own profiler, which writes that trace

Prints as JSON how many syncs each range has, by DESIGN.md's rules.
"""
import argparse
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "probes" / "torch"))
import moe_layers  # noqa: E402 (found by the path above)

EXPERTS = 4


class Named:
    """The same range for NVTX and for the profiler."""

    def __init__(self, name):
        self.name, self.annotation = name, torch.profiler.record_function(name)

    def __enter__(self):
        torch.cuda.nvtx.range_push(self.name)
        self.annotation.__enter__()

    def __exit__(self, *error):
        self.annotation.__exit__(*error)
        torch.cuda.nvtx.range_pop()


class Program:
    def __init__(self):
        torch.manual_seed(0)
        self.x = torch.rand(256, 64, device="cuda")
        self.pinned = torch.empty(256, 64, pin_memory=True)
        self.host = torch.rand(256, 64)
        self.masked = moe_layers.MaskedMoE(64, 128, EXPERTS).cuda().eval()
        self.sorted = moe_layers.SortedMoE(64, 128, EXPERTS).cuda().eval()
        self.expected = {}

    def repeat(self, name, times, syncs, action):
        with Named(name):
            for _ in range(times):
                action()
        self.expected[name] = times * syncs

    def event(self):
        event = torch.cuda.Event()
        (self.x * 2).sum()
        event.record()
        event.synchronize()

    def to_pinned(self):
        self.pinned.copy_(self.x, non_blocking=True)
        torch.cuda.current_stream().synchronize()

    def run(self):
        self.expected.clear()
        self.repeat("waits-item", 20, 1, lambda: self.x.sum().item())
        self.repeat("waits-tolist", 5, 1, lambda: self.x[0].tolist())
        self.repeat("waits-event", 5, 1, self.event)
        self.repeat("waits-device", 3, 1, torch.cuda.synchronize)
        self.repeat("waits-pinned", 4, 1, self.to_pinned)
        self.repeat("waits-pageable", 4, 1, lambda: self.host.copy_(self.x, non_blocking=True))
        # PyTorch makes pinned memory for this one: a copy that nobody waits for.
        self.repeat("waits-to-cpu", 4, 0, lambda: self.x.to("cpu", non_blocking=True))
        self.repeat("waits-upload", 3, 1, lambda: self.host.to("cuda"))
        self.repeat("waits-none", 3, 0, lambda: self.x.to("cuda").add_(0))
        with torch.no_grad():
            hit = len(self.masked.route(self.x)[1].unique().tolist())
            self.repeat("waits-masked", 2, EXPERTS + 2 * hit, lambda: self.masked(self.x))
            self.repeat("waits-sorted", 2, 1, lambda: self.sorted(self.x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile")
    options = parser.parse_args()
    program = Program()
    program.run()  # libraries and caches are set up
    torch.cuda.synchronize()
    if options.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
                                    with_stack=True) as profiler:
            program.run()
        profiler.export_chrome_trace(options.profile)
    else:
        program.run()
    print(json.dumps(program.expected))


main()
