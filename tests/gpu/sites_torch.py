#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/parts/sites.sh runs under the tracer.

lines   forwards of the masked and the sorted layer; writes which line must have how many syncs
cost    times many .item() of a small tensor; writes the median and the mean, in microseconds
stress  frees that the allocator forces, on one thread; tensors dropped on another; a third spins in Python. Fails if a
        free stalls: a tracer that waits for the interpreter's lock while PyTorch holds its allocator's would hang here
"""
import argparse
import json
import os
import sys
import threading
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "probes", "torch"))
import moe_layers  # noqa: E402


def line_of(text):
    with open(moe_layers.__file__, encoding="utf-8") as file:
        found = [number for number, line in enumerate(file, 1) if text in line]
    if len(found) != 1:
        raise SystemExit(f"moe_layers.py has {text!r} on {len(found)} lines")
    return found[0]


def lines(options):
    experts, forwards = 8, 25
    torch.manual_seed(0)
    x = torch.randn(4096, 512, device="cuda")
    with torch.no_grad():
        masked = moe_layers.VARIANTS["masked"](512, 1408, experts).cuda().eval()
        by_sort = moe_layers.VARIANTS["sorted"](512, 1408, experts).cuda().eval()
        hit = moe_layers.hit_experts(masked, x)
        for _ in range(forwards):
            masked(x)
            by_sort(x)
        torch.cuda.synchronize()
    return {
        "file": os.path.realpath(moe_layers.__file__),
        "lines": [
            {"line": line_of("if mask.any():"), "count": experts * forwards, "pattern": "scalar read-back"},
            {"line": line_of("mask.any(dim=-1).nonzero()"), "count": hit * forwards, "pattern": None},
            {"line": line_of("share = weights[mask]"), "count": hit * forwards, "pattern": None},
            {"line": line_of("right=True).tolist()"), "count": forwards, "pattern": ".tolist(), .cpu()"},
        ],
    }


def depth(levels, call):
    return depth(levels - 1, call) if levels else call()


def cost(options):
    flag = torch.ones(1, device="cuda")
    times = []

    def loop():
        for _ in range(20000):
            start = time.perf_counter_ns()
            flag.item()
            times.append(time.perf_counter_ns() - start)

    depth(10, loop)
    times.sort()
    return {"p50_us": times[len(times) // 2] / 1000, "mean_us": sum(times) / len(times) / 1000}


def stress(options):
    end, longest, frees = time.monotonic() + options.seconds, 0.0, 0
    stop = threading.Event()

    def drop():
        while not stop.is_set():
            tensors = [torch.empty(1 << 20, device="cuda") for _ in range(8)]
            del tensors

    def spin():
        while not stop.is_set():
            pass

    threads = [threading.Thread(target=drop), threading.Thread(target=spin)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        start = time.monotonic()
        block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        block.fill_(1)
        del block
        torch.cuda.empty_cache()
        longest = max(longest, time.monotonic() - start)
        frees += 1
    stop.set()
    for thread in threads:
        thread.join(30)
    if any(thread.is_alive() for thread in threads):
        raise SystemExit("a thread did not end")
    return {"frees": frees, "longest_ms": longest * 1000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("lines", "cost", "stress"))
    parser.add_argument("--output", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    result = {"lines": lines, "cost": cost, "stress": stress}[options.what](options)
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(result, file)
    print(json.dumps(result))


main()
