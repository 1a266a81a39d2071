#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The phases of training of probes/torch/equivalence.py count, by the tracer's report.

usage: compare_equivalence.py CASES.json REPORT.json
One PASS or FAIL line for each thing that must hold: forward and recompute have E + 2 hit syncs (masked) or 1 (sorted),
the optimizer none, whatever the dtype and top-k; a touched expert adds none; autograd's threads have what the calling
thread has. Backward is measured: a LAW line for each phase gives what was found over E and hit.
"""

import json
import sys


class Counts:
    def __init__(self, report):
        (self.process,) = [p for p in report["processes"] if p.get("syncs")]
        self.by_path = {r["path"]: r for r in self.process["ranges"]}
        self.failed = False

    def say(self, ok, name, text):
        self.failed = self.failed or not ok
        print(f"{'PASS' if ok else 'FAIL'} equivalence-{name}: {text}")

    def of(self, case, phase, exclusive=False):
        """Syncs of the one occurrence of a phase; None: it is not in the report."""
        found = self.by_path.get(f"{case['range']}/{phase}")
        if found is None or found["occurrences"] != 1:
            return None
        return found["syncs"]["self" if exclusive else "total"]


def expected(case):
    return case["experts"] + 2 * case["hit"] if case["variant"] == "masked" else 1


def law(points):
    """Whole numbers a, b, c with a E + b hit + c through all points, or None. Points: (experts, hit, syncs)."""
    for c in range(-2, 9):
        for a in range(0, 9):
            for b in range(0, 9):
                if all(a * experts + b * hit + c == syncs for experts, hit, syncs in points):
                    return a, b, c
    return None


def phase_law(counts, name, cases, phase, exclusive=False):
    points = [(case["experts"], case["hit"], counts.of(case, phase, exclusive)) for case in cases]
    if not points or any(point[2] is None for point in points):
        counts.say(False, name, f"{sum(p[2] is None for p in points)} of {len(points)} cases lack the range {phase}")
        return None
    found = law(points)
    shown = ", ".join(f"E={e} hit={h}: {s}" for e, h, s in sorted(set(points)))
    if found is None:
        print(f"LAW {name}: none with whole numbers ({shown})")
    else:
        a, b, c = found
        print(f"LAW {name}: {a} E + {b} hit + {c} ({len(points)} cases; {shown})")
    counts.say(found is not None, name + "-law", "a law with whole numbers" if found else f"no law: {shown}")
    return found


def check_phases(counts, variant, cases):
    for phase, kinds in (("forward", ("plain", "checkpoint", "eval")), ("backward/recompute", ("checkpoint",))):
        wrong = [
            f"{case['range']}: {counts.of(case, phase)} instead of {expected(case)}"
            for case in cases
            if case["kind"] in kinds and counts.of(case, phase) != expected(case)
        ]
        total = sum(case["kind"] in kinds for case in cases)
        counts.say(
            total > 0 and not wrong, f"{variant}-{phase.split('/')[-1]}", f"{total} cases" if not wrong else "; ".join(wrong[:4])
        )
    wrong = [case["range"] for case in cases if case["kind"] != "eval" and counts.of(case, "optimizer") != 0]
    counts.say(not wrong, f"{variant}-optimizer", "0 syncs in each case" if not wrong else "; ".join(wrong[:4]))


def check_touch(counts, variant, cases):
    """Few tokens: experts without any are touched in training and not in eval."""
    few = {(case["experts"], case["kind"]): case for case in cases if case["tokens"] < 16}
    compared = 0
    for (experts, kind), case in few.items():
        other = few.get((experts, "eval"))
        if kind != "plain" or other is None:
            continue
        touched = case["experts"] - case["hit"]
        one, two = counts.of(case, "forward"), counts.of(other, "forward")
        compared += touched
        counts.say(
            one is not None and one == two,
            f"{variant}-touch-E{experts}",
            f"forward with {touched} experts touched: {one} syncs, without: {two}",
        )
    counts.say(compared > 0, f"{variant}-touched", f"{compared} experts were touched in all")


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        counts = Counts(json.load(file))
    print(f"torch {document['torch']} on {document['device']}")
    for variant in sorted({case["variant"] for case in document["cases"]}):
        cases = [case for case in document["cases"] if case["variant"] == variant]
        plain = [case for case in cases if case["kind"] == "plain"]
        check_phases(counts, variant, cases)
        check_touch(counts, variant, cases)
        phase_law(counts, f"{variant} forward", plain, "forward")
        phase_law(counts, f"{variant} backward", plain, "backward")
        again = [case for case in cases if case["kind"] == "checkpoint"]
        phase_law(counts, f"{variant} recompute", again, "backward/recompute")
        phase_law(counts, f"{variant} backward without its recompute", again, "backward", True)
        phase_law(counts, f"{variant} optimizer", plain, "optimizer")
    check_threads(counts, document["cases"])
    syncs = counts.process["syncs"]
    counts.say(syncs["uncertain"] == 0, "certain", f"{syncs['uncertain']} uncertain, {syncs['failed']} failed")
    return 1 if counts.failed else 0


def check_threads(counts, cases):
    """What autograd's threads did in no range: three times (two of them warm-up) the backward of each such case."""
    wanted = 0
    for case in cases:
        if case["kind"] != "threads":
            continue
        twin = [
            other
            for other in cases
            if other["kind"] == "plain"
            and all(other[key] == case[key] for key in ("variant", "experts", "top_k", "dtype", "tokens"))
        ]
        wanted += 3 * (counts.of(twin[0], "backward") or 0)
        own = counts.of(case, "backward")
        counts.say(own == 0, f"{case['variant']}-threads-own", f"{own} syncs in the calling thread's range backward")
    found = counts.by_path.get("backward")
    total = found["syncs"]["total"] if found else 0
    counts.say(
        total == wanted > 0, "threads", f"{total} syncs of autograd's threads are listed as backward, {wanted} expected"
    )
    sites = sum(
        site["count"] for site in counts.process["sites"] if site["kind"] == "sync" and site["range"] == "backward"
    )
    counts.say(sites == total, "threads-sites", f"{sites} of them by site")


if __name__ == "__main__":
    sys.exit(main())
