#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rival of the fused layer: the same Mixture-of-Experts layer in bf16 by torch._grouped_mm. It answers the requests of
bench_fused (compare.py sends them), timed alike.

    rival.py [--check] [--seed N]

    setup JSON          what bench_fused answered to its setup, and "routing": the file it wrote
    round rival MODE N  plain, or graph: replays of torch.cuda.CUDAGraph
    versions
    quit

--check: on the CPU, no times. Every forward has router, softmax, top-k, sort, gather, two grouped GEMMs, biases where the shape
has them, activation and combination. Its top-k is computed as any router's; the experts that are then used are those that
bench_fused drew, so that both read the weights of the same experts. It never waits for the device.
"""
import argparse
import gc
import json
import math
import sys

import torch
import torch.nn.functional as F

CHECKED_TOKENS = 16
TOLERANCE = 2e-2  # of the norm, against a loop over experts in fp32; bf16 has 2^-8, three roundings deep


class Refused(Exception):
    pass


def uniform(shape, columns, device, generator):
    """Values that keep their variance through `columns` products, as the other side's weights."""
    scale = math.sqrt(3.0 / columns)
    return torch.empty(shape, dtype=torch.bfloat16, device=device).uniform_(-scale, scale, generator=generator)


class Layer:
    def __init__(self, setup, device, seed):
        shape = setup["shape"]
        self.hidden, self.intermediate = shape["hidden"], shape["intermediate"]
        self.experts, self.top_k, self.tokens = shape["experts"], shape["top_k"], setup["tokens"]
        self.gated, self.renormalize, self.kind = shape["gated"], shape["renormalize"], shape["activation"]
        self.alpha, self.beta, self.limit = (setup["activation"][key] for key in ("alpha", "beta", "limit"))
        self.slots, self.copies, self.device = setup["slots"], setup["copies"], device
        if not self.gated:
            raise Refused(f"activation {self.kind}: only gated ones are written here")
        generator = torch.Generator(device=device).manual_seed(seed)
        rows, experts, hidden = 2 * self.intermediate, self.experts, self.hidden
        self.weights = [{
            "router": uniform((experts, hidden), hidden, device, generator),
            "w13": uniform((experts, rows, hidden), hidden, device, generator),
            "w2": uniform((experts, hidden, self.intermediate), self.intermediate, device, generator),
            "bias13": uniform((experts, rows), 12, device, generator) if shape["biases"] else None,
            "bias2": uniform((experts, hidden), 12, device, generator) if shape["biases"] else None,
        } for _ in range(self.copies)]
        self.inputs = [uniform((self.tokens, hidden), 3, device, generator) for _ in range(self.slots)]
        self.chosen = self.read_routing(setup["routing"])
        self.all_experts = torch.arange(experts, device=device)
        self.positions = torch.arange(self.tokens * self.top_k, device=device)
        self.graphs, self.outputs = [], []

    def read_routing(self, path):
        count = self.slots * self.tokens * self.top_k
        with open(path, "rb") as file:
            data = bytearray(file.read())
        if len(data) != 4 * count:
            raise Refused(f"{path} has {len(data)} bytes, {4 * count} are {self.slots} slots of {self.tokens} x {self.top_k}")
        chosen = torch.frombuffer(data, dtype=torch.int32).view(self.slots, -1)
        if int(chosen.min()) < 0 or int(chosen.max()) >= self.experts:
            raise Refused(f"{path} names an expert that is not one of {self.experts}")
        return list(chosen.long().to(self.device))

    def activate(self, h):
        gate, up = h.chunk(2, dim=-1)
        if self.limit is not None:
            gate, up = gate.clamp(max=self.limit), up.clamp(-self.limit, self.limit)
        if self.alpha == 1.0 and self.beta == 0.0:
            return F.silu(gate) * up
        return gate * torch.sigmoid(self.alpha * gate) * (up + self.beta)

    def route(self, x, router):
        probs = torch.softmax(F.linear(x, router), dim=-1, dtype=torch.float32)
        best, _ = torch.topk(probs, self.top_k, dim=-1)
        return best / best.sum(dim=-1, keepdim=True) if self.renormalize else best

    def forward(self, slot):
        w, x, chosen = self.weights[slot % self.copies], self.inputs[slot], self.chosen[slot]
        best = self.route(x, w["router"])
        by_expert, order = torch.sort(chosen)
        ends = torch.searchsorted(by_expert, self.all_experts, right=True, out_int32=True)
        h = torch._grouped_mm(x[order // self.top_k], w["w13"].transpose(-2, -1), offs=ends)
        if w["bias13"] is not None:
            h += w["bias13"][by_expert]
        y = torch._grouped_mm(self.activate(h), w["w2"].transpose(-2, -1), offs=ends)
        if w["bias2"] is not None:
            y += w["bias2"][by_expert]
        y *= best.flatten()[order].to(y.dtype).unsqueeze(-1)
        inverse = torch.empty_like(order)
        inverse[order] = self.positions
        return y[inverse].view(self.tokens, self.top_k, self.hidden).sum(dim=1)

    def by_loop(self, slot, tokens):
        """The first tokens of the same forward, expert after expert in fp32."""
        w, x = self.weights[slot % self.copies], self.inputs[slot][:tokens].float()
        best = self.route(self.inputs[slot], w["router"])[:tokens]
        chosen = self.chosen[slot].view(self.tokens, self.top_k)[:tokens]
        y = torch.zeros(tokens, self.hidden, device=self.device)
        for expert in chosen.unique().tolist():
            rows, places = (chosen == expert).nonzero(as_tuple=True)
            h = x[rows] @ w["w13"][expert].float().T
            if w["bias13"] is not None:
                h += w["bias13"][expert].float()
            out = self.activate(h) @ w["w2"][expert].float().T
            if w["bias2"] is not None:
                out += w["bias2"][expert].float()
            y.index_add_(0, rows, out * best[rows, places].unsqueeze(-1))
        return y

    def verify(self):
        tokens = min(self.tokens, CHECKED_TOKENS)
        expected, found = self.by_loop(0, tokens), self.forward(0)[:tokens].float()
        error = float((found - expected).norm() / expected.norm())
        if not error <= TOLERANCE:
            raise Refused(f"NOT VERIFIED, so not timed: the layer differs from a loop over experts by {error:.3g} of its norm")
        return error

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for slot in range(min(3, self.slots)):
                self.forward(slot)
        torch.cuda.current_stream().wait_stream(side)
        pool = torch.cuda.graph_pool_handle()
        for slot in range(self.slots):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self.outputs.append(self.forward(slot))
            self.graphs.append(graph)
        for slot in range(self.slots):  # the pool is shared: each output is read before the next replay
            expected = self.forward(slot).float()
            self.graphs[slot].replay()
            error = float((self.outputs[slot].float() - expected).norm() / expected.norm())
            if not error <= TOLERANCE:
                raise Refused(f"NOT VERIFIED, so not timed: the graph of slot {slot} differs by {error:.3g} from its launches")


class Rival:
    def __init__(self, check, seed):
        self.check, self.seed, self.layer = check, seed, None
        if not check and not torch.cuda.is_available():
            raise SystemExit("rival.py: PyTorch finds no CUDA device; --check runs on the CPU, without times")
        self.device = torch.device("cpu" if check else "cuda")

    def versions(self):
        return {"torch": torch.__version__, "cuda": torch.version.cuda,
                "device": "cpu" if self.check else torch.cuda.get_device_name()}

    def setup(self, text):
        try:
            setup = json.loads(text)
        except ValueError as why:
            raise Refused(f"setup: no JSON: {why}") from why
        self.layer = None
        gc.collect()
        if not self.check:
            torch.cuda.empty_cache()
        layer = Layer(setup, self.device, self.seed)
        answer = {"rel_error": layer.verify()}
        if not self.check:
            layer.capture()
            torch.cuda.synchronize()
        self.layer = layer
        return answer

    def round(self, variant, mode, count):
        layer = self.layer
        if layer is None:
            raise Refused("round: nothing is set up; send setup first")
        if variant != "rival" or mode not in ("plain", "graph"):
            raise Refused(f'round: "{variant} {mode}" is not rival plain or rival graph')
        if not count.isdecimal() or int(count) < 1 or int(count) % layer.slots:
            raise Refused(f"round: {count} forwards are not whole turns of {layer.slots} slots")
        count = int(count)
        run = layer.forward if mode == "plain" or self.check else lambda slot: layer.graphs[slot].replay()
        return {"forwards": count, "us": self.timed(run, count, layer.slots)}

    def timed(self, run, count, slots):
        if self.check:
            for i in range(count):
                run(i % slots)
            return None
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        gc.disable()
        try:
            run(slots - 1)  # as bench_fused: the device is busy when the first event is recorded
            start.record()
            for i in range(count):
                run(i % slots)
            stop.record()
            stop.synchronize()
        finally:
            gc.enable()
        return start.elapsed_time(stop) * 1e3 / count

    def serve(self, line):
        word, _, rest = line.partition(" ")
        words = rest.split()
        if word == "setup":
            return self.setup(rest)
        if word == "round" and len(words) == 3:
            return self.round(*words)
        if word == "versions":
            return self.versions()
        raise Refused(f'"{word}" is no request: setup JSON, round rival MODE N, versions, quit')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rival = Rival(options.check, options.seed)
    with torch.inference_mode():
        for line in sys.stdin:
            line = line.strip()
            if line == "quit":
                break
            if not line:
                continue
            try:
                answer = dict({"ok": True}, **rival.serve(line))
            except (Refused, OSError, KeyError, RuntimeError) as why:  # RuntimeError: what PyTorch raises, out of memory too
                answer = {"ok": False, "error": str(why).splitlines()[0] if str(why) else type(why).__name__}
            print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
