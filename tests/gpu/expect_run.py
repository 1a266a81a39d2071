#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the JSON report of `synccount run` against what the program knows that it did, one PASS or FAIL line each.

usage: expect_run.py NAME REPORT EXPECTATION...
  totals=7,40         the syncs of the processes, smallest first
  steps=COUNT:WARMUP:MIN:MAX   of the only process
  range=NAME:SYNCS    every occurrence of every range of that name had exactly SYNCS syncs, at least one did
  warning=TEXT        a warning holds TEXT
Always: it ran on a real device, nothing was lost or uncertain, each process has a wall time that no thread waited
longer than, and the tracer's cost for a call was measured and is below 5 us.
"""
import json
import sys


class Checks:
    def __init__(self, name, report):
        self.name, self.report, self.failed = name, report, False
        self.processes = report.get("processes") or []

    def say(self, what, ok, text):
        self.failed = self.failed or not ok
        print(f"{'PASS' if ok else 'FAIL'} {self.name}/{what}: {text}")

    def always(self):
        simulated = (self.report.get("device") or {}).get("simulated")
        self.say("device", simulated is False, f"simulated: {simulated}")
        losses = self.report.get("losses") or {}
        self.say("losses", losses.get("records") == 0 and losses.get("chunks") == 0, json.dumps(losses))
        self.say("measured", bool(self.processes) and all(p.get("syncs") for p in self.processes), "every process")
        for process in self.processes:
            syncs, wall = process.get("syncs") or {}, process.get("wall_us")
            waits = [thread["wait_us"] or 0 for thread in process["threads"]]
            self.say("uncertain", syncs.get("uncertain") == 0, str(syncs.get("uncertain")))
            self.say("wall", wall is not None and max(waits, default=0) <= wall, f"{wall} us, waits {waits}")
            if process.get("ended_cleanly"):
                cost = process["tracer"]["call_us"]
                self.say("cost", cost is not None and 0 < cost < 5, f"{cost} us a recorded call")

    def totals(self, text):
        found = sorted((p.get("syncs") or {}).get("total", -1) for p in self.processes)
        self.say("totals", found == [int(part) for part in text.split(",")], f"{text} expected, {found} found")

    def steps(self, text):
        found = [p.get("steps") for p in self.processes]
        wanted = dict(zip(("count", "warmup", "min", "max"), (int(part) for part in text.split(":"))))
        ok = len(found) == 1 and found[0] is not None and all(found[0][key] == wanted[key] for key in wanted)
        self.say("steps", ok, f"{wanted} expected, {found} found")

    def range(self, text):
        name, _, count = text.rpartition(":")
        found = [
            (r["syncs"]["min"], r["syncs"]["max"]) for p in self.processes for r in p["ranges"] if r["name"] == name
        ]
        self.say(f"range-{name}", bool(found) and all(f == (int(count), int(count)) for f in found),
                 f"{count} syncs an occurrence expected, min and max {found}")

    def warning(self, text):
        self.say("warning", any(text in w for w in self.report.get("warnings") or []), f"'{text}' is warned of")


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[2], encoding="utf-8") as file:
        checks = Checks(sys.argv[1], json.load(file))
    checks.always()
    for expectation in sys.argv[3:]:
        kind, _, text = expectation.partition("=")
        if kind not in ("totals", "steps", "range", "warning"):
            print(f"{kind} is no expectation", file=sys.stderr)
            return 2
        getattr(checks, kind)(text)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
