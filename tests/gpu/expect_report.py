#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a synccount/report/1 file against what must be in it, one PASS or FAIL line each.

usage: expect_report.py NAME REPORT EXPECTATION...
  per-layer   VARIANT:EXPERTS:COUNT, every traced layer of that variant and expert count had exactly COUNT syncs
  law         VARIANT:TEXT, the law stated for the variant
  spread      VARIANT:EXPERTS:MIN:MAX, the fewest and the most syncs a layer had
  identical   every sorted output equals the masked one bit by bit
  exact       every layer of every run had its expected count, at least one run of each variant
  counts-only skips the checks below: the probe was built wrong on purpose
Otherwise always: it ran on a real device, nothing was lost, every run was verified, and by_class sums to
per_forward * forwards.
"""
import json
import sys


def close(a, b):
    return a is not None and b is not None and abs(a - b) < 1e-9


def name_of(run):
    return f"{run['variant']} E={run['experts']}"


class Checks:
    def __init__(self, name, report):
        self.name, self.report, self.failed = name, report, False

    def say(self, what, ok, text):
        self.failed = self.failed or not ok
        print(f"{'PASS' if ok else 'FAIL'} {self.name}/{what}: {text}")

    def runs(self, variant=None, experts=None):
        return [
            r
            for r in self.report.get("runs") or []
            if variant in (None, r["variant"]) and experts in (None, r["experts"])
        ]

    def always(self):
        report = self.report
        self.say("schema", report.get("schema") == "synccount/report/1", str(report.get("schema")))
        device = report.get("device") or {}
        simulated = device.get("simulated")
        self.say("device", simulated is False, f"{device.get('name')}, simulated: {simulated}")
        losses = report.get("losses") or {}
        self.say("losses", losses.get("records") == 0 and losses.get("chunks") == 0, json.dumps(losses))
        unverified = [name_of(r) for r in self.runs() if not (r.get("verified") or {}).get("ok")]
        self.say("verified", bool(self.runs()) and not unverified, ", ".join(unverified) or f"{len(self.runs())} runs")
        for run in self.runs():
            syncs = run.get("syncs")
            if not syncs:
                self.say("counted", False, f"{name_of(run)} has no traced pass")
                continue
            total = sum(syncs["by_class"].values())
            stated = syncs["per_forward"] * run["forwards"]
            if not close(total, stated):
                self.say("classes", False, f"{name_of(run)}: by_class sums to {total}, not {stated}")
            doubts = {key: syncs.get(key) for key in ("uncertain", "failed") if syncs.get(key)}
            if doubts:
                self.say("certain", False, f"{name_of(run)}: {doubts}")

    def per_layer(self, spec):
        variant, experts, count = spec.split(":")
        runs = self.runs(variant, int(experts))
        found = [(r["syncs"]["per_layer"]["min"], r["syncs"]["per_layer"]["max"]) for r in runs if r.get("syncs")]
        ok = bool(found) and all(lo == int(count) and hi == int(count) for lo, hi in found)
        self.say(f"{variant}-E{experts}", ok, f"{count} syncs per layer expected, min and max {found}")

    def spread(self, spec):
        variant, experts, low, high = spec.split(":")
        runs = self.runs(variant, int(experts))
        found = [(r["syncs"]["per_layer"]["min"], r["syncs"]["per_layer"]["max"]) for r in runs if r.get("syncs")]
        ok = bool(found) and all((lo, hi) == (int(low), int(high)) for lo, hi in found)
        self.say(f"{variant}-E{experts}", ok, f"{low} to {high} syncs a layer expected, min and max {found}")

    def law(self, spec):
        variant, _, text = spec.partition(":")
        found = [law.get("text") for law in self.report.get("laws") or [] if law["variant"] == variant]
        self.say(f"law-{variant}", found == [text], f"expected {text!r}, found {found}")

    def identical(self):
        runs = self.runs("sorted")
        found = [r.get("output_matches_masked") for r in runs]
        self.say("identical", bool(runs) and all(f is True for f in found), f"output_matches_masked {found}")

    def exact(self):
        fused = ["fused-nvfp4"] if self.runs("fused-nvfp4") else []
        for variant in ["masked", "sorted"] + fused:
            runs = [r for r in self.runs(variant) if r.get("syncs")]
            bad = []
            for run in runs:
                found, expected = run["syncs"]["per_layer"]["mean"], run["syncs"]["expected_per_layer"]
                # The mean may be right where two layers are wrong.
                if not close(found, expected) or run["syncs"]["exact"] is not True:
                    bad.append(f"E={run['experts']}: {found} a layer, expected {expected} in each")
            self.say(f"exact-{variant}", bool(runs) and not bad, "; ".join(bad) or f"{len(runs)} runs as expected")


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, path = sys.argv[1:3]
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        print(f"FAIL {name}: {path}: {error}")
        return 1
    checks = Checks(name, report)
    if "counts-only" not in sys.argv[3:]:
        checks.always()
    for argument in sys.argv[3:]:
        key, _, value = argument.partition("=")
        if key == "per-layer":
            checks.per_layer(value)
        elif key == "spread":
            checks.spread(value)
        elif key == "law":
            checks.law(value)
        elif argument in ("identical", "exact"):
            getattr(checks, argument)()
        elif argument == "counts-only":
            pass
        else:
            print(f"expect_report.py: what is {argument}?", file=sys.stderr)
            return 2
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
