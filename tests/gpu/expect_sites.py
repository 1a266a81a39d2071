#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""expect_sites.py lines EXPECTED.json REPORT.json
   expect_sites.py cost REPORT.json NONE.json... -- BOTH.json...
Holds the sites of a report, and what taking stacks costs a sync, against what they must be. Prints verdict lines."""
import json
import os
import sys

import stack_cost


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def verdict(good, name, text):
    print(f"{'PASS' if good else 'FAIL'} {name}: {text}")


def same_file(frame, path):
    return os.path.basename(frame["file"] or "") == os.path.basename(path)


def check_lines(expected, report):
    (process,) = report["processes"]
    counts, patterns, native = {}, {}, {}
    for site in process["sites"]:
        frame = next((f for f in site["python"] if same_file(f, expected["file"])), None)
        if site["kind"] != "sync" or frame is None or frame["function"].endswith("hit_experts"):
            continue
        counts[frame["line"]] = counts.get(frame["line"], 0) + site["count"]
        patterns.setdefault(frame["line"], set()).add(site["pattern"])
        native[frame["line"]] = [f["function"] for f in site["native"][:4]]
    for want in expected["lines"]:
        line = want["line"]
        verdict(counts.get(line) == want["count"], f"sites-line-{line}",
                f"{counts.get(line, 0)} syncs at moe_layers.py:{line}, {want['count']} expected; "
                f"{sorted(patterns.get(line, []))}; native {native.get(line)}")
        if want["pattern"]:
            verdict(patterns.get(line) == {want["pattern"]}, f"sites-pattern-{line}",
                    f"{sorted(patterns.get(line, []))}, {want['pattern']!r} expected")
    others = {line: count for line, count in counts.items() if line not in {w["line"] for w in expected["lines"]}}
    # unique() of hit_experts and the like are below these lines' functions but on their own lines
    print(f"NOTE sites-other-lines: other lines of that file: {others or 'none'}")
    total = sum(site["count"] for site in process["sites"] if site["kind"] == "sync")
    verdict(total == process["syncs"]["total"], "sites-sum", f"{total} of {process['syncs']['total']} syncs have a site")
    stacks = process["stacks"]
    verdict(stacks["missing"] * 50 <= stacks["taken"], "sites-missing",
            f"{stacks['missing']} of {stacks['taken']} stacks not in full, {stacks['walked']} walked")


def check_cost(report, without, both):
    process = report["processes"][0]
    verdict(stack_cost.mean_us(process) <= stack_cost.LIMIT_US, "sites-cost-told", stack_cost.told(process))
    middle = [sorted(load(path)["p50_us"] for path in paths) for paths in (without, both)]
    none_us, both_us = (values[len(values) // 2] for values in middle)
    verdict(both_us - none_us <= stack_cost.LIMIT_US, "sites-cost-measured",
            f".item() p50 {none_us:.2f} us without stacks, {both_us:.2f} us with both: {both_us - none_us:+.2f} us")


if sys.argv[1] == "lines":
    check_lines(load(sys.argv[2]), load(sys.argv[3]))
else:
    split = sys.argv.index("--")
    check_cost(load(sys.argv[2]), sys.argv[3:split], sys.argv[split + 1:])
