#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the JSON report of `synccount run` against what the program says that it did, one PASS or FAIL line each.

usage: expect_company.py [--simulated] NAME REPORT EXPECTED
EXPECTED: the program's output; its last line that begins with {"processes": is read. There
  processes[]        as many as the report has. With a pid, that process; otherwise in the report's order
    pid, rank        which one
    total            its syncs
    by_class         all four, or those that are named
    read_backs, d2h_copies, host_functions, launches, poll_waits, idle_syncs, captured, failed ...: as in the report's
                     syncs
    threads          {TID: {"syncs": N, "d2h_copies": N, ...}}: of that thread; a thread that is not named has none of them
    d2h_threads      {TID: NAME}: device-to-host copies were made on some of these threads and on no other
    lines            {"FILE:LINE": [CLASS, COUNT]}: syncs whose innermost frame in FILE is at LINE; no others in FILE
    steps            {"count": N, "min": N, ...}: as in the report's steps
    ranges           {NAME: {"syncs": N, "launches": N, "occurrences": N}}: all ranges of that name together
  ranks              {"total": N, "min": N, "max": N}: as in the report's ranks.syncs
  warnings[]         each is in a warning
  no_warnings[]      none is in any warning
  notes[]            said in a NOTE line, for people
Always: real device (simulated with --simulated), nothing lost, every process measured and nothing uncertain.
"""
import json
import os
import sys


def last_expectation(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = [line for line in file if line.startswith('{"processes":')]
    return json.loads(found[-1]) if found else None


class Checks:
    def __init__(self, name, report, simulated):
        self.name, self.report, self.simulated, self.failed = name, report, simulated, False
        # torchrun's own process may start CUDA, and makes no call that is counted.
        self.processes = [process for process in report.get("processes") or []
                          if "torch.distributed.run" not in (process.get("command") or "") or process.get("syncs")]

    def say(self, what, ok, text):
        self.failed = self.failed or not ok
        print(f"{'PASS' if ok else 'FAIL'} {self.name}/{what}: {text}")

    def equal(self, what, found, wanted):
        self.say(what, found == wanted, f"{found}" if found == wanted else f"{found} instead of {wanted}")

    def always(self):
        found = [p.get("simulated") for p in self.processes]
        self.say("device", bool(found) and all(value is self.simulated for value in found), f"simulated: {found}")
        losses = self.report.get("losses") or {}
        self.say("losses", losses.get("records") == 0 and losses.get("chunks") == 0, json.dumps(losses))
        self.say("measured", bool(found) and all(p.get("syncs") for p in self.processes), f"{len(found)} processes")
        uncertain = [(p.get("syncs") or {}).get("uncertain") for p in self.processes]
        self.say("uncertain", bool(found) and not any(uncertain), f"{uncertain}")

    def pair(self, wanted):
        """(expected, found) of each process."""
        rest = list(self.processes)
        for expected in wanted:
            key = next((key for key in ("pid", "rank") if key in expected), None)
            found = [p for p in rest if key is None or p.get(key) == expected[key]]
            if not found:
                self.say("process", False, f"no process with {key} {expected.get(key)}")
                continue
            rest.remove(found[0])
            yield expected, found[0]
        self.equal("processes", len(self.processes), len(wanted))

    def process(self, expected, process):
        syncs = process.get("syncs") or {}
        label = f"{expected['pid']}-" if "pid" in expected else f"rank{expected['rank']}-" if "rank" in expected else ""
        sites = [(s["class"], s["api"], s["count"]) for s in process["sites"] if s["kind"] == "sync"]
        for key, wanted in expected.items():
            if key in ("pid", "rank"):
                continue
            if key in ("threads", "d2h_threads", "lines", "ranges"):
                getattr(self, key)(label, wanted, process)
            elif key == "steps":
                found = process.get("steps") or {}
                self.equal(label + "steps", {name: found.get(name) for name in wanted}, wanted)
            elif key == "total":
                found = syncs.get("total")
                self.say(label + "total", found == wanted,
                         f"{found} syncs" if found == wanted else f"{found} syncs instead of {wanted}; sites: {sites[:12]}")
            elif key == "by_class":
                found = syncs.get("by_class") or {}
                self.equal(label + "by_class", {name: found.get(name) for name in wanted}, wanted)
            else:
                self.equal(label + key, syncs.get(key), wanted)

    def threads(self, label, wanted, process):
        for thread in process["threads"]:
            named = wanted.get(str(thread["tid"]), {})
            for key in sorted({key for counts in wanted.values() for key in counts}):
                self.equal(f"{label}thread-{thread['tid']}-{key}", thread.get(key), named.get(key, 0))
        missing = set(wanted) - {str(thread["tid"]) for thread in process["threads"]}
        self.say(label + "threads", not missing, f"not in the report: {sorted(missing) or 'none'}")

    def d2h_threads(self, label, wanted, process):
        found = {str(t["tid"]): (t["name"], t["d2h_copies"]) for t in process["threads"] if t.get("d2h_copies")}
        strangers = {tid: value for tid, value in found.items() if wanted.get(tid) != value[0]}
        self.say(label + "d2h-threads", bool(found) and not strangers, f"{found}, strangers: {strangers or 'none'}")

    def lines(self, label, wanted, process):
        files = {place.rsplit(":", 1)[0] for place in wanted}
        found = {}
        for site in process["sites"]:
            frame = next((f for f in site["python"] if os.path.basename(f["file"] or "") in files), None)
            if site["kind"] != "sync" or frame is None:
                continue
            place = f"{os.path.basename(frame['file'])}:{frame['line']}"
            found.setdefault(place, {})
            found[place][site["class"]] = found[place].get(site["class"], 0) + site["count"]
        for place, (cls, count) in wanted.items():
            self.equal(f"{label}line-{place}", found.pop(place, {}), {cls: count} if count else {})
        self.equal(label + "other-lines", found, {})

    def ranges(self, label, wanted, process):
        for name, counts in wanted.items():
            ranges = [r for r in process["ranges"] if r["name"] == name]
            for key, count in counts.items():
                values = [r["syncs"]["total"] if key == "syncs" else r[key] for r in ranges]
                self.equal(f"{label}range-{name}-{key}", sum(values) if ranges else None, count)

    def ranks(self, wanted):
        ranks = self.report.get("ranks") or {}
        self.equal("ranks", {name: (ranks.get("syncs") or {}).get(name) for name in wanted}, wanted)
        waits = [ranks.get(key) for key in ("waits_most", "waits_least")]
        self.say("ranks-waits", self.simulated or None not in waits, f"most and least wait on ranks {waits}")

    def warnings(self, expected):
        warnings = self.report.get("warnings") or []
        for text in expected.get("warnings", []):
            self.say("warning", any(text in w for w in warnings), f"'{text}' is warned of; all: {len(warnings)}")
        for text in expected.get("no_warnings", []):
            self.say("no-warning", not any(text in w for w in warnings), f"'{text}' is not warned of")
        for text in expected.get("notes", []):
            print(f"NOTE {self.name}/note: {text}")


def main():
    arguments = sys.argv[1:]
    simulated = "--simulated" in arguments
    arguments = [a for a in arguments if a != "--simulated"]
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, report, expected = arguments[0], arguments[1], last_expectation(arguments[2])
    if expected is None:
        print(f"FAIL {name}/expectation: the program did not say what it did")
        return 1
    with open(report, encoding="utf-8") as file:
        checks = Checks(name, json.load(file), simulated)
    checks.always()
    for wanted, found in checks.pair(expected["processes"]):
        checks.process(wanted, found)
    if "ranks" in expected:
        checks.ranks(expected["ranks"])
    checks.warnings(expected)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
