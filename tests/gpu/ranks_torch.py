#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training of a small sorted MoE by DistributedDataParallel, one process a rank, for tests/gpu/parts/ranks.sh:

    torchrun --nproc-per-node 2 ranks_torch.py [--backend nccl|gloo]

A step waits twice on every rank: the layer's .tolist() and the loss's .item(). Rank 1 reads the loss a second time, so its
count is another. Warm-up is outside cuProfilerStart and cuProfilerStop: there communicators are made, and DDP times its
first ten iterations with events. Rank 0 prints what the report must show, for expect_company.py.
"""
import argparse
import ctypes
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

WARMUP, STEPS = 12, 20


class SortedMoE(nn.Module):
    """Top-1 experts on contiguous slices, the sizes read in one .tolist(); every expert gets at least one token."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                                     for _ in range(experts))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        count = len(self.experts)
        # One token for each expert, whatever the gate says: DDP needs a gradient of every parameter.
        chosen = torch.cat([torch.arange(count, device=x.device), chosen[count:]])
        order = chosen.argsort()
        sizes = (chosen.unsqueeze(0) == torch.arange(count, device=x.device).unsqueeze(1)).sum(1).tolist()
        parts = [expert(part) for expert, part in zip(self.experts, x.index_select(0, order).split(sizes))]
        return x + torch.cat(parts).index_select(0, order.argsort()) * weights.unsqueeze(-1)


def step(model, optimizer, x, rank):
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    value = loss.item()
    if rank == 1:
        value += loss.item()
    return value


def expectation(ranks, backend):
    each = [3 if rank == 1 else 2 for rank in range(ranks)]
    processes = [
        {"rank": rank, "steps": {"count": STEPS, "min": count, "max": count}} for rank, count in enumerate(each)
    ]
    nccl = backend == "nccl"
    result = {
        "processes": processes,
        "notes": [f"torch {torch.__version__}, {ranks} ranks by {backend} on {torch.cuda.device_count()} GPUs"
                  + (f", NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}" if nccl else "")],
    }
    if nccl:  # gloo copies through the host, and waits, on threads of its own
        for process, count in zip(processes, each):
            process.update(total=count * STEPS, read_backs=count * STEPS)
        result["ranks"] = {"total": sum(each) * STEPS, "min": 2 * STEPS, "max": max(each) * STEPS}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    options = parser.parse_args()
    rank, ranks, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    device = torch.device("cuda", local % torch.cuda.device_count())
    torch.cuda.set_device(device)
    if options.backend == "nccl":
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(SortedMoE(256, 4).to(device), device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)
    x = torch.randn(4096, 256, device=device)
    cuda = ctypes.CDLL("libcuda.so.1")
    for _ in range(WARMUP):
        step(model, optimizer, x, rank)
    torch.cuda.synchronize()
    started = cuda.cuProfilerStart()
    for number in range(STEPS):
        torch.cuda.nvtx.range_push(f"step:{number}")
        step(model, optimizer, x, rank)
        torch.cuda.nvtx.range_pop()
    stopped = cuda.cuProfilerStop()
    weight = model.module.gate.weight.detach().float().sum()
    sums = [torch.zeros_like(weight) for _ in range(ranks)]
    dist.all_gather(sums, weight)
    torch.cuda.synchronize()
    if started or stopped:
        raise SystemExit(f"rank {rank}: cuProfilerStart {started}, cuProfilerStop {stopped}")
    if not all(torch.equal(weight, other) for other in sums):
        raise SystemExit(f"rank {rank}: the ranks' weights differ: {sums}")
    if rank == 0:
        print(json.dumps(expectation(ranks, options.backend)), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
