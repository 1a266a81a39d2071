#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""expect_import.py NAME REPORT EXPECTED RUNS: the report's ranges have the syncs that the program said, RUNS times each (a
tracer that also saw the warm-up run sees two). PASS and FAIL lines."""
import json
import sys


def main():
    name, report_path, expected_path, runs = sys.argv[1:]
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    with open(expected_path, encoding="utf-8") as file:
        expected = json.loads([line for line in file if line.startswith("{")][-1])
    found, occurrences, uncertain = {}, {}, 0
    for process in report["processes"]:
        for one in process["ranges"]:
            last = one["path"].rsplit("/", 1)[-1]
            if last in expected:
                found[last] = found.get(last, 0) + one["syncs"]["total"]
                uncertain += one["uncertain"]
                occurrences[last] = occurrences.get(last, 0) + one["occurrences"]
    failed = not expected
    for key, syncs in expected.items():
        times = int(runs)
        ok = found.get(key) == syncs * times and occurrences.get(key) == times
        failed |= not ok
        print(f"{'PASS' if ok else 'FAIL'} {name}/{key}: {syncs * times} syncs expected in {times} occurrences, "
              f"{found.get(key)} found in {occurrences.get(key)}")
    print(f"{'FAIL' if uncertain or not expected else 'PASS'} {name}/uncertain: {uncertain} in {len(expected)} ranges")
    sys.exit(1 if failed or uncertain else 0)


main()
