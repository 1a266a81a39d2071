# SPDX-License-Identifier: Apache-2.0
"""The two MoE feed-forward layers in eager PyTorch, as many models write them: a masked loop over the experts, and a
dispatch by sorting. Both compute the same function; they differ in how often the host has to wait for the device.

    masked   E + 2 * hit waits a forward: `if mask.any()` for every expert, nonzero and a boolean mask for each one hit
    sorted   1 wait a forward, whatever E: the bounds of the experts' slices, read with .tolist()

Run as a program, it checks both on the CPU against a loop over tokens and prints what it compared.
"""
import torch
from torch import nn
from torch.nn import functional


class Expert(nn.Module):
    """down(silu(gate x) * up x), no bias."""

    def __init__(self, hidden, intermediate):
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class MoELayer(nn.Module):
    """Router and experts; a subclass says how tokens reach them."""

    def __init__(self, hidden, intermediate, experts, top_k=1, renormalize=True):
        super().__init__()
        self.top_k = top_k
        self.renormalize = renormalize
        self.router = nn.Linear(hidden, experts, bias=False)
        self.experts = nn.ModuleList(Expert(hidden, intermediate) for _ in range(experts))

    def route(self, tokens):
        """Weights and expert indices, both [tokens, top_k]."""
        scores = self.router(tokens).softmax(dim=-1)
        weights, chosen = torch.topk(scores, k=self.top_k, dim=-1, sorted=False)
        if self.renormalize and self.top_k > 1:
            weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
        return weights, chosen

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        weights, chosen = self.route(tokens)
        return self.dispatch(tokens, weights, chosen).reshape(x.shape)

    def dispatch(self, tokens, weights, chosen):
        raise NotImplementedError

    def touch(self, output, expert):
        """Training: adds nothing, but keeps an expert without tokens in the graph, so that its gradients are zeros and
        not missing (DistributedDataParallel waits for all of them). Index and factor are known to the host: no wait."""
        output[0, 0] += 0 * sum(parameter.sum() for parameter in expert.parameters())


class MaskedMoE(MoELayer):
    """The loop over experts. Every `if`, nonzero and boolean mask makes the host wait."""

    def dispatch(self, tokens, weights, chosen):
        output = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            mask = chosen == index
            if mask.any():
                rows = mask.any(dim=-1).nonzero().flatten()
                share = weights[mask].view(-1, 1)
                output.index_add_(0, rows, (expert(tokens[rows]) * share).to(output.dtype))
            elif self.training:
                self.touch(output, expert)
        return output


class SortedMoE(MoELayer):
    """Slots sorted by expert on the device; the host reads the E slice ends once."""

    def dispatch(self, tokens, weights, chosen):
        sorted_experts, order = torch.sort(chosen.flatten(), stable=True)
        numbers = torch.arange(len(self.experts), device=chosen.device)
        ends = torch.searchsorted(sorted_experts, numbers, right=True).tolist()
        rows = order // self.top_k
        gathered = tokens[rows]
        parts, start = [], 0
        for expert, end in zip(self.experts, ends):
            if end > start:
                parts.append(expert(gathered[start:end]))
            start = end
        share = weights.flatten()[order].view(-1, 1)
        output = torch.zeros_like(tokens)
        output.index_add_(0, rows, (torch.cat(parts) * share).to(output.dtype))
        for expert, start, end in zip(self.experts, [0] + ends, ends):
            if self.training and start == end:
                self.touch(output, expert)
        return output


VARIANTS = {"masked": MaskedMoE, "sorted": SortedMoE}


def hit_experts(layer, x):
    """How many experts receive at least one token of x. Waits for the device: call it outside what is counted."""
    with torch.no_grad():
        _, chosen = layer.route(x.reshape(-1, x.shape[-1]))
    return int(torch.unique(chosen).numel())


def waits_expected(variant, experts, hit):
    return experts + 2 * hit if variant == "masked" else 1


def _reference(layer, x):
    """The same function, token by token."""
    weights, chosen = layer.route(x)
    rows = []
    for token, shares, experts in zip(x, weights, chosen):
        rows.append(sum(share * layer.experts[int(index)](token) for share, index in zip(shares, experts)))
    return torch.stack(rows)


def _self_check():
    torch.manual_seed(0)
    for experts in (1, 4, 8):
        for top_k in (1, 2):
            if top_k > experts:
                continue
            x = torch.randn(64, 32)
            masked = MaskedMoE(32, 48, experts, top_k)
            by_sort = SortedMoE(32, 48, experts, top_k)
            by_sort.load_state_dict(masked.state_dict())
            with torch.no_grad():
                want, one, two = _reference(masked, x), masked(x), by_sort(x)
            torch.testing.assert_close(one, want, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(two, want, rtol=1e-5, atol=1e-6)
            hit = hit_experts(masked, x)
            print(f"E={experts} top-{top_k}: masked and sorted agree with the loop over tokens; {hit} experts hit")


if __name__ == "__main__":
    _self_check()
