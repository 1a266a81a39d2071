#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""expect_lines.py NAME KNOWN REPORT: a report of probes/torch/forward.py under `synccount run --torch-modules
--capture-range cudaProfilerApi`, held against what the program printed: every sync of every layer, under the Python line
that causes it. PASS and FAIL lines."""
import json
import pathlib
import sys

import stack_cost

# The lines of probes/torch/moe_layers.py that wait, by what stands on them, and how often a layer's forward does there.
LINES = {
    "masked": {"if mask.any():": "experts", "mask.any(dim=-1).nonzero()": "hit", "weights[mask]": "hit"},
    "sorted": {"right=True).tolist()": "one"},
}


def main():
    name, known_path, report_path = sys.argv[1:]
    with open(known_path, encoding="utf-8") as file:
        known = json.loads([line for line in file if line.startswith("{")][-1])
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    failed = []

    def say(good, what, text):
        if not good:
            failed.append(what)
        print(f"{'PASS' if good else 'FAIL'} {name}-{what}: {text}")

    (process,) = [p for p in report["processes"] if p.get("syncs")]
    forwards, hit, waits = known["forwards"], known["hit"], known["waits"]
    total = process["syncs"]["total"]
    say(total == forwards * sum(waits), "total", f"{total} syncs, {forwards} forwards of {waits} expected")
    layers = [r for r in process["ranges"] if r["level"] == "layer"]
    found = [(r["syncs"]["min"], r["syncs"]["max"], r["occurrences"]) for r in layers]
    say(found == [(n, n, forwards) for n in waits], "layers", f"{[r['name'] for r in layers]}: {found}")
    source = (pathlib.Path(__file__).resolve().parents[2] / "probes" / "torch" / "moe_layers.py").read_text().splitlines()
    left = total
    for text, how in LINES[known["variant"]].items():
        (line,) = [i + 1 for i, one in enumerate(source) if text in one and "def " not in one and '"""' not in one]
        sites = [s for s in process["sites"] if s["kind"] == "sync" and s["python"] and s["python"][0]["line"] == line
                 and s["python"][0]["file"].endswith("moe_layers.py")]
        count = sum(s["count"] for s in sites)
        left -= count
        wanted = forwards * {"experts": known["experts"] * len(hit), "hit": sum(hit), "one": len(hit)}[how]
        say(count == wanted, f"line-{line}", f"{count} syncs at moe_layers.py:{line} ({text}), {wanted} expected; "
            f"{sorted({s['pattern'] for s in sites})}")
    say(left == 0, "elsewhere", f"{left} syncs on other lines")
    if known["variant"] == "masked":
        say(stack_cost.mean_us(process) <= stack_cost.LIMIT_US, "stacks", stack_cost.told(process))
    else:  # so few syncs that the mean is of the first ones
        print(f"NOTE {name}-stacks: {stack_cost.told(process)}")
    say(not (report["losses"]["records"] or report["losses"]["chunks"]), "losses", json.dumps(report["losses"]))
    sys.exit(1 if failed else 0)


main()
