#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""expect_attach.py NAME REPORT EXPECTATION...: checks the JSON report of one attach; prints PASS and FAIL lines.

RANGE=OCCURRENCES:SYNCS   a range of this name, so often, each time with so many syncs
warning=TEXT              a warning holds it
Always: one process, attached late, measured, with at least one sync, and nothing lost.
"""
import json
import sys


def check(name, what, good, text):
    print(f"{'PASS' if good else 'FAIL'} {name}-{what}: {text}")
    return good


def main():
    name, path, expectations = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    processes = report["processes"]
    process = processes[0] if len(processes) == 1 else {"syncs": {"total": 0}, "attached_late": False, "ranges": []}
    good = check(
        name,
        "process",
        process["attached_late"] and process["syncs"]["total"] > 0 and report["losses"]["records"] == 0,
        f"{len(processes)} processes, {process['syncs']['total']} syncs, late: {process['attached_late']}, "
        f"{report['losses']['records']} records lost",
    )
    for expectation in expectations:
        key, value = expectation.split("=", 1)
        if key == "warning":
            good &= check(name, "warning", any(value in text for text in report["warnings"]), f"'{value}' is said")
            continue
        occurrences, syncs = (int(number) for number in value.split(":"))
        found = [one for one in process["ranges"] if one["path"].split("/")[-1] == key]
        seen = [(one["occurrences"], one["syncs"]["min"], one["syncs"]["max"]) for one in found]
        good &= check(name, key, seen == [(occurrences, syncs, syncs)], f"occurrences, least and most syncs: {seen}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
