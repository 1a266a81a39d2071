#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The masked loop and the sorted dispatch of moe_layers.py are one function: what they compute, their gradients and
what they learn. And, under the tracer, what each phase of training asks of the host.

    equivalence.py check [--device cpu|cuda]   one PASS or FAIL line a case
        E in 1, 2, 4, 8 x top-k 1, 2 x train, eval x fp32, bf16 autocast x enough tokens for every expert, and too few:
        outputs, the input's gradient and every parameter's gradient are torch.equal. (top-k 2 on CUDA: index_add_ adds
        by atomics, in any order. Where the two differ there, a variant's own rerun must differ as well, and the values
        must be close.)
        On the CPU also: 12 AdamW steps of a two-layer model, equal to the last bit after each.
    equivalence.py count --output FILE         on CUDA: ranges around each phase, and FILE says which and of what
        forward, backward and optimizer apart, and recompute under checkpointing. Backward runs on the calling thread,
        so that its range holds its calls; the last case leaves it to autograd's threads.
Run the second under the tracer and hold its report against FILE with tests/gpu/compare_equivalence.py.
"""

import argparse
import contextlib
import copy
import json
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from moe_layers import VARIANTS, hit_experts

HIDDEN, INTERMEDIATE = 64, 96
EXPERTS, TOP_K = (1, 2, 4, 8), (1, 2)
MANY, FEW = 512, 3  # tokens: all experts are hit; some are not
STEPS = 12


def make(experts, top_k, device, seed=0):
    """One layer of each variant with the same weights."""
    torch.manual_seed(seed)
    masked = VARIANTS["masked"](HIDDEN, INTERMEDIATE, experts, top_k)
    by_sort = VARIANTS["sorted"](HIDDEN, INTERMEDIATE, experts, top_k)
    by_sort.load_state_dict(masked.state_dict())
    return masked.to(device), by_sort.to(device)


def tokens_of(count, device, seed=1):
    torch.manual_seed(seed)
    return torch.randn(count, HIDDEN).to(device), torch.randn(count, HIDDEN).to(device)


def precision(name, device):
    if name == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


# ---- check -----------------------------------------------------------------------------------------------------------


def results(layer, x, gradient, dtype, device):
    """Output, the input's gradient and all parameters' gradients, by name."""
    layer.zero_grad(set_to_none=True)
    x = x.clone().requires_grad_()
    with precision(dtype, device):
        output = layer(x)
    output.backward(gradient.to(output.dtype))
    found = {"output": output.detach(), "input.grad": x.grad}
    for name, parameter in layer.named_parameters():
        found[name + ".grad"] = parameter.grad
    return found


def differences(one, two):
    """Names of what is not equal. A gradient that is missing in both is equal."""
    return [
        name
        for name in one
        if not (one[name] is two[name] is None)
        and (one[name] is None or two[name] is None or not torch.equal(one[name], two[name]))
    ]


def close(one, two, dtype):
    """Within what a different order of additions may change."""
    bound = 1e-5 if dtype == "fp32" else 2e-2
    return all(
        one[name] is None or (one[name] - two[name]).abs().max() <= bound * (1 + one[name].abs().max())
        for name in one
    )


def check_case(experts, top_k, mode, dtype, count, device):
    name = f"E={experts} top-{top_k} {mode} {dtype} T={count}"
    masked, by_sort = make(experts, top_k, device)
    masked.train(mode == "train")
    by_sort.train(mode == "train")
    x, gradient = tokens_of(count, device)
    one = results(masked, x, gradient, dtype, device)
    two = results(by_sort, x, gradient, dtype, device)
    missing = [key for key, value in one.items() if value is None]
    wrong = differences(one, two)
    hit = hit_experts(masked, x)
    expect_missing = 0 if mode == "train" else 3 * (experts - hit)
    if len(missing) != expect_missing:
        print(f"FAIL equal {name}: {len(missing)} gradients are missing instead of {expect_missing}")
        return False
    how = "torch.equal"
    if wrong and torch.device(device).type == "cuda" and top_k > 1:
        rerun = differences(one, results(masked, x, gradient, dtype, device)) + differences(
            two, results(by_sort, x, gradient, dtype, device)
        )
        how = f"not bitwise ({', '.join(wrong[:3])}); a rerun of the same variant differs in {len(rerun)}"
        if rerun and close(one, two, dtype):
            wrong = []
    if wrong:
        print(f"FAIL equal {name}: {', '.join(wrong[:6])} differ ({how})")
        return False
    print(f"PASS equal {name}: output, input and {len(one) - 2} parameter gradients, {hit} experts hit ({how})")
    return True


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in layers)

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        return x


def check_training(experts, top_k, dtype):
    pairs = [make(experts, top_k, "cpu", seed) for seed in (0, 1)]
    models = [Model([pair[index] for pair in pairs]).train() for index in (0, 1)]
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-2) for model in models]
    name = f"E={experts} top-{top_k} {dtype}"
    before = copy.deepcopy(models[0].state_dict())
    for step in range(STEPS):
        x, target = tokens_of(40, "cpu", seed=100 + step)
        losses = []
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            with precision(dtype, "cpu"):
                loss = (model(x) - target).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        one, two = models[0].state_dict(), models[1].state_dict()
        wrong = [key for key in one if not torch.equal(one[key], two[key])]
        if wrong or not torch.equal(*losses):
            print(f"FAIL adamw {name}: after step {step + 1} {', '.join(wrong[:4]) or 'the loss'} differ")
            return False
    moved = sum(not torch.equal(before[key], one[key]) for key in before)
    if moved < len(before) - 1:
        print(f"FAIL adamw {name}: only {moved} of {len(before)} tensors were trained")
        return False
    print(f"PASS adamw {name}: {STEPS} steps, {len(one)} tensors equal after each, last loss {losses[0].item():.6f}")
    return True


def check(options):
    if options.device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
    ok = True
    for experts in EXPERTS:
        for top_k in TOP_K:
            if top_k > experts:
                continue
            for dtype in ("fp32", "bf16"):
                for mode in ("train", "eval"):
                    for count in (MANY, FEW):
                        ok &= check_case(experts, top_k, mode, dtype, count, options.device)
                if options.device == "cpu":
                    ok &= check_training(experts, top_k, dtype)
    return 0 if ok else 1


# ---- count -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def span(name):
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def train_once(layer, optimizer, x, gradient, dtype, checkpointed):
    """One iteration; what lies outside the four ranges is no phase."""
    phase = "forward"

    def run(tokens):
        with span(phase), precision(dtype, "cuda"):
            return layer(tokens)

    x = x.clone().requires_grad_()
    output = checkpoint(run, x, use_reentrant=False) if checkpointed else run(x)
    phase = "recompute"
    gradient = gradient.to(output.dtype)
    with span("backward"):
        output.backward(gradient)
    with span("optimizer"):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def count_case(variant, experts, top_k, dtype, count, checkpointed=False, threads=False):
    layer = make(experts, top_k, "cuda")[0 if variant == "masked" else 1].train()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.0)  # the routing stays
    x, gradient = tokens_of(count, "cuda")
    hit = hit_experts(layer, x)
    kind = "threads" if threads else "checkpoint" if checkpointed else "plain"
    name = f"equivalence:{variant}:E={experts}:k={top_k}:{dtype}:T={count}:{kind}"
    torch.cuda.synchronize()
    with torch.autograd.set_multithreading_enabled(threads):
        for attempt in range(3):
            with span(name if attempt == 2 else "equivalence:warm-up:" + kind):
                train_once(layer, optimizer, x, gradient, dtype, checkpointed)
            torch.cuda.synchronize()
    return {
        "range": name,
        "variant": variant,
        "experts": experts,
        "top_k": top_k,
        "dtype": dtype,
        "tokens": count,
        "hit": hit,
        "kind": kind,
    }


def eval_case(variant, experts, count):
    layer = make(experts, 1, "cuda")[0 if variant == "masked" else 1].eval()
    x, _ = tokens_of(count, "cuda")
    hit = hit_experts(layer, x)
    name = f"equivalence:{variant}:E={experts}:k=1:fp32:T={count}:eval"
    with torch.no_grad():
        layer(x)
        torch.cuda.synchronize()
        with span(name), span("forward"):
            layer(x)
    torch.cuda.synchronize()
    return {
        "range": name,
        "variant": variant,
        "experts": experts,
        "top_k": 1,
        "dtype": "fp32",
        "tokens": count,
        "hit": hit,
        "kind": "eval",
    }


def count(options):
    cases = []
    for variant in VARIANTS:
        for experts in EXPERTS + (16,):
            for top_k in TOP_K:
                if top_k <= experts:
                    cases.append(count_case(variant, experts, top_k, "fp32", 4 * MANY))
                    cases.append(count_case(variant, experts, top_k, "bf16", 4 * MANY))
            cases.append(count_case(variant, experts, 1, "fp32", 4 * MANY, checkpointed=True))
            cases.append(count_case(variant, experts, 1, "fp32", FEW))
            cases.append(eval_case(variant, experts, FEW))
        cases.append(count_case(variant, 8, 1, "fp32", 4 * MANY, threads=True))
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(
            {"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "cases": cases}, file, indent=1
        )
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "count"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", help="of count: the JSON file with what was run")
    options = parser.parse_args()
    if options.what == "check":
        return check(options)
    if not options.output:
        parser.error("count needs --output")
    if not torch.cuda.is_available():
        print("equivalence.py: PyTorch sees no CUDA device here", file=sys.stderr)
        return 3
    return count(options)


if __name__ == "__main__":
    sys.exit(main())
