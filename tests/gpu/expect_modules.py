#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks reports of tests/gpu/modules_torch.py under `synccount run --torch-modules`: PASS and FAIL lines.

usage: expect_modules.py WHAT KNOWN.json REPORT.json        what the program knows, and the report
       expect_modules.py cost WITHOUT.json WITH.json REPORT.json    times of a module's call; the report of WITH
"""

import json
import sys

failed = False


def say(ok, name, text):
    global failed
    failed = failed or not ok
    print(f"{'PASS' if ok else 'FAIL'} modules-{name}: {text}")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Report:
    def __init__(self, path):
        report = load(path)
        self.warnings = report["warnings"]
        # Inductor compiles in processes of its own, which start CUDA as well.
        (self.process,) = [p for p in report["processes"] if "compile_worker" not in (p.get("command") or "")]
        self.ranges = self.process["ranges"]

    def total(self, name, below=""):
        """Syncs of all ranges of this name whose path begins with `below`, and their occurrences."""
        found = [r for r in self.ranges if r["name"] == name and r["path"].startswith(below)]
        return sum(r["syncs"]["total"] for r in found), sum(r["occurrences"] for r in found)

    def warned(self, text):
        return any(text in warning for warning in self.warnings)


def check_layers(report, what, known, syncs):
    for index in range(2):
        name = f"layers.{index}"
        levels = {r["level"] for r in report.ranges if r["name"] == name}
        total, occurrences = report.total(name, "Model/")
        say(levels == {"layer"}, f"{what}-level", f"{name} is of level {levels}")
        say(
            (total, occurrences) == (syncs * known["iterations"], known["iterations"]),
            f"{what}-{name}",
            f"{total} syncs in {occurrences} forwards, {syncs} each expected",
        )


def check_train(what, known, report):
    steps, syncs = report.process["steps"], 3 * known["experts"]  # every expert is hit
    say(
        bool(steps) and steps["source"] == "optimizer" and steps["count"] == known["iterations"] - 1,
        f"{what}-steps",
        json.dumps(steps),
    )
    check_layers(report, what, known, syncs)
    backward = [r for r in report.ranges if r["path"] == "backward"]
    total = backward[0]["syncs"]["total"] if backward else 0
    of_threads = sum(t["syncs"] for t in report.process["threads"] if (t["name"] or "").startswith("pt_autograd"))
    say(
        bool(backward) and total == of_threads > 0,
        f"{what}-backward",
        f"{total} syncs in range backward, {of_threads} on autograd's threads, "
        f"{total / known['iterations']:g} an iteration of 2 layers with {known['experts']} experts",
    )
    if what == "recompute":
        again, _ = report.total("layers.0", "backward/")
        say(again == syncs * known["iterations"], "recompute-again", f"{again} syncs of layers.0 below backward")
    if steps:
        each = 2 * syncs + total // known["iterations"]
        say(
            steps["min"] == steps["max"] == each, f"{what}-each", f"{each} syncs a step expected: {json.dumps(steps)}"
        )
    per_step = sum(s["per_step"] or 0 for s in report.process["sites"] if s["kind"] == "sync")
    say(
        bool(steps) and abs(per_step - (steps["median"] or 0)) < 1e-6,
        f"{what}-sites",
        f"the sites' syncs a step sum to {per_step:g}",
    )


def check_infer(what, known, report):
    steps = report.process["steps"]
    say(
        bool(steps) and steps["source"] == "forward" and steps["count"] == known["iterations"] - 1,
        "infer-steps",
        json.dumps(steps),
    )
    total, occurrences = report.total("layers.0")
    say(
        (total, occurrences) == (3 * known["experts"] * known["iterations"], known["iterations"]),
        "infer-layers.0",
        f"{total} syncs in {occurrences}",
    )
    total, occurrences = report.total("layers.1")
    say(
        (total, occurrences) == (3 * known["experts"] * 5, 5) and known["raised"] == 1,
        "infer-exception",
        f"{total} syncs in {occurrences}: one forward ended before it",
    )
    open_ranges = [r["path"] for r in report.ranges if r["unfinished"]]
    say(not open_ranges and not report.warned("had no push"), "infer-closed", f"still open: {open_ranges}")


def check_compile(what, known, report):
    say(
        "eager" in known["backends"] and known["graph_breaks"] == 0,
        "compile-fullgraph",
        f"backends {known['backends']}, {known['graph_breaks']} graph breaks",
    )
    say(
        report.warned("compiled regions hide") and report.warned("layers.0"),
        "compile-told",
        "; ".join(w for w in report.warnings if "compiled" in w) or "no warning",
    )
    missed = [w for w in report.warnings if "saw no call" in w]  # of a worker of Inductor, which runs nothing itself
    say(not missed, "compile-workers", "; ".join(missed) or "no process is said to have lost its modules")


def check_profile(what, known, report):
    say(
        known["device_events"] == 0 and report.warned("torch.profiler was started"),
        "profile-told",
        f"the profiler saw {known['device_events']} events of the GPU; "
        + "; ".join(w for w in report.warnings if "profiler" in w),
    )
    say(report.process["syncs"]["total"] > 0, "profile-counted", f"{report.process['syncs']['total']} syncs")


def check_cost(without, with_option, report):
    calls = sum(r["occurrences"] for r in report.ranges if r["domain"] == "synccount.torch")
    say(calls > 0, "cost-ranges", f"{calls} calls of modules had a range")
    one, two = load(without)["call_ns"], load(with_option)["call_ns"]
    say(
        two - one < 5000,
        "cost",
        f"a module's call takes {one / 1000:.2f} us without ranges, {two / 1000:.2f} us with: "
        f"{(two - one) / 1000:+.2f} us",
    )


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if len(sys.argv) != (5 if what == "cost" else 4):
        print(__doc__, file=sys.stderr)
        return 2
    if what == "cost":
        check_cost(sys.argv[2], sys.argv[3], Report(sys.argv[4]))
    else:
        checks = {
            "train": check_train,
            "recompute": check_train,
            "infer": check_infer,
            "compile": check_compile,
            "profile": check_profile,
        }
        checks[what](what, load(sys.argv[2]), Report(sys.argv[3]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
