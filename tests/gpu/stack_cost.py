# SPDX-License-Identifier: Apache-2.0
"""What taking stacks cost a process, by its report: the mean, and what it is made of."""

LIMIT_US = 2.0  # a sync, with both stacks on


def mean_us(process):
    stacks = process["stacks"]
    return stacks["total_us"] / stacks["taken"] if stacks["taken"] else 0.0


def depth(process, kind):
    """Frames of a stack, the mean over syncs."""
    syncs = sum(site["count"] for site in process["sites"])
    return sum(site["count"] * len(site[kind]) for site in process["sites"]) / syncs if syncs else 0.0


def told(process):
    stacks = process["stacks"]
    known = stacks["taken"] - stacks["walked"]
    text = f"{mean_us(process):.2f} us a stack by the tracer's own clock, {stacks['taken']} stacks"
    if known:
        known_us = (stacks["total_us"] - stacks["walked_us"]) / known
        text += f": {known_us:.2f} us each of {known} that were known, the longest {stacks['longest_us']:.1f} us"
    if stacks["walked"]:
        text += f"; {stacks['walked_us'] / stacks['walked']:.1f} us each of {stacks['walked']} that were walked"
    return f"{text}; {depth(process, 'python'):.1f} Python and {depth(process, 'native'):.1f} native frames deep"
