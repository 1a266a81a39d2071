#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tracer's count of HuggingFace MoE models against PyTorch's own sync warnings, by case, layer and line.

usage: compare_hf.py HF.json REPORT.json RANGES.tsv
The first comes from hf_moe.py, the second from the `synccount run --torch-modules` around it, the third from
range_counts over its traces. A warning stands for a stream synchronise inside PyTorch: the tracer's `copy` and
`implicit` syncs have none, nor have event and device synchronises and pageable copies without a stream synchronise.
One PASS or FAIL line a case (both counts and their difference by class), one for its layers, one a line of source.
"""

import collections
import csv
import json
import os
import sys

failed = False


def say(ok, name, text):
    global failed
    failed = failed or not ok
    print(f"{'PASS' if ok else 'FAIL'} hf-{name}: {text}")


def check_case(case, ranges, versions):
    name = case["range"].replace(":", "-").removeprefix("hf-")
    row = ranges.get(case["range"])
    if row is None:
        say(False, name, f"no range {case['range']!r} in the trace")
        return
    count = {
        key: int(row[key]) for key in ("syncs", "explicit", "copy", "pageable", "implicit", "uncertain", "failed")
    }
    rest = count["syncs"] - count["copy"] - count["implicit"] - case["warnings"]
    say(
        rest == 0 and count["uncertain"] == count["failed"] == 0,
        name,
        f"tracer {count['syncs']} (explicit {count['explicit']}, pageable {count['pageable']}, copy {count['copy']}, "
        f"implicit {count['implicit']}), {versions} warned {case['warnings']} times; difference "
        f"{count['syncs'] - case['warnings']:+d}, not explained {rest:+d}",
    )


def check_layers(case, process):
    name = case["range"].replace(":", "-").removeprefix("hf-") + "-layers"
    below = case["range"] + "/"
    layers = [
        r
        for r in process["ranges"]
        if r["path"].startswith(below) and r["level"] == "layer" and r["domain"] == "synccount.torch"
    ]
    names = [layer["name"] for layer in layers]
    wanted = [f"model.layers.{index}" for index in range(case["layers"])]
    inside = {}
    for layer in layers:
        modules = [r for r in process["ranges"] if r["path"].startswith(layer["path"] + "/") and r["syncs"]["self"]]
        inside[layer["name"]] = (
            ", ".join(f"{r['name'].rpartition('.')[2]} {r['syncs']['self']}" for r in modules) or "-"
        )
    say(
        names == wanted,
        name,
        "; ".join(f"{layer['name']} {layer['syncs']['total']} ({inside[layer['name']]})" for layer in layers)
        or "no layer",
    )


def check_lines(cases, process):
    warned = collections.Counter()
    for case in cases:
        for place, count in case["lines"].items():
            file, _, line = place.rpartition(":")
            warned[os.path.basename(file), int(line)] += count
    traced = collections.Counter()
    apart = collections.Counter()
    for site in process["sites"]:
        if site["kind"] != "sync" or not site["python"]:
            continue
        frame = site["python"][0]
        place = os.path.basename(frame["file"] or ""), frame["line"]
        if site["class"] in ("copy", "implicit") or "Stream" not in site["api"] and "Async" not in site["api"]:
            apart[place] += site["count"]
        else:
            traced[place] += site["count"]
    for place in sorted(set(warned) | set(traced)):
        say(
            traced[place] == warned[place],
            f"line-{place[0]}-{place[1]}",
            f"tracer {traced[place]}, warnings {warned[place]}"
            + (f", {apart[place]} of other classes" if apart[place] else ""),
        )
    for place in sorted(set(apart) - set(warned) - set(traced)):
        print(f"NOTE {place[0]}:{place[1]}: {apart[place]} syncs of a kind that PyTorch does not warn of")


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        (process,) = [p for p in json.load(file)["processes"] if p.get("syncs")]
    with open(sys.argv[3], encoding="utf-8", newline="") as file:
        ranges = {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}
    versions = f"PyTorch {document['torch']}, transformers {document['transformers']},"
    cases = [case for case in document["cases"] if "skipped" not in case]
    for case in document["cases"]:
        if "skipped" in case:
            print(f"SKIP hf-{case['range'].replace(':', '-').removeprefix('hf-')}: {case['skipped']}")
    say(len(cases) >= 2, "cases", f"{len(cases)} of {len(document['cases'])} ran")
    for case in cases:
        check_case(case, ranges, versions)
        check_layers(case, process)
    check_lines(cases, process)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
