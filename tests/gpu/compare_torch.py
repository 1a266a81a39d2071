#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tracer's count of each range against PyTorch's own synchronisation warnings in it.

usage: compare_torch.py WARNINGS.json RANGES.tsv
The first comes from probes/torch/count_warnings.py, the second from range_counts. One PASS or FAIL line a case, with both
counts and their difference by class: a warning stands for a stream synchronise inside PyTorch, so the tracer's `copy` and
`implicit` syncs have none; what these do not explain is named.
"""
import csv
import json
import sys


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8", newline="") as file:
        ranges = {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}
    if not document["cases"]:
        print("FAIL torch: no case was measured")
        return 1
    failed = False
    for case in document["cases"]:
        name = f"torch-{case['variant']}-E{case['experts']}-T{case['tokens']}"
        row = ranges.get(case["range"])
        if row is None:
            print(f"FAIL {name}: the trace has no range {case['range']!r}; it has {sorted(ranges)[:5]}")
            failed = True
            continue
        syncs = int(row["syncs"])
        classes = ", ".join(f"{key} {row[key]}" for key in ("explicit", "copy", "pageable", "implicit"))
        beside = ", ".join(f"{key} {row[key]}" for key in ("poll_waits", "uncertain", "failed") if row[key] != "0")
        ok = (
            syncs == case["warnings"] == case["expected"]
            and row["occurrences"] == "1"
            and row["uncertain"] == row["failed"] == row["copy"] == row["implicit"] == "0"
        )
        failed = failed or not ok
        print(
            f"{'PASS' if ok else 'FAIL'} {name}: tracer {syncs} ({classes}{'; ' + beside if beside else ''}), "
            f"PyTorch {document['torch']} warned {case['warnings']} times, expected {case['expected']} "
            f"({case['hit']} experts hit); difference {syncs - case['warnings']:+d}, "
            f"of it copy {row['copy']}, implicit {row['implicit']}, not explained "
            f"{syncs - int(row['copy']) - int(row['implicit']) - case['warnings']:+d}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
