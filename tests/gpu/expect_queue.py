#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `synccount run` says of launches that waited for room in the queue against what the program (tests/programs/
filling) saw by its own clock; and that a run with a full trace has the totals of one without. PASS or FAIL lines.

usage: expect_queue.py NAME REPORT OUTPUT [waits|none]
       expect_queue.py NAME --same WHOLE LIMITED
"""
import json
import sys


def say(name, what, ok, text):
    print(f"{'PASS' if ok else 'FAIL'} {name}/{what}: {text}")
    return ok


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def same(name, whole, limited):
    a, b = (load(path)["processes"][0]["syncs"] for path in (whole, limited))
    apart = ("wait_us", "without_detail", "api_calls", "queue_waits", "queue_wait_us")  # times, and queries in a loop
    differing = [key for key in a if key not in apart and a[key] != b[key]]
    ok = say(name, "totals", not differing, f"{a['total']} syncs and {b['total']}; differing: {differing or 'nothing'}")
    ok &= say(name, "details", 0 < b["without_detail"] < b["total"], f"{b['without_detail']} without details")
    return ok


def queue(name, path, output, wanted):
    report = load(path)
    syncs = report["processes"][0]["syncs"]
    with open(output, encoding="utf-8") as file:
        words = file.read().split()
    launches, slow, slow_us, median = int(words[1]), int(words[3]), float(words[5]), float(words[7])
    waits, wait_us = syncs["queue_waits"], syncs["queue_wait_us"] or 0.0
    text = (f"{waits} launches waited {wait_us:.0f} us; by the program's clock {slow} took 50 us or more, {slow_us:.0f} us "
            f"in all, median {median} us")
    warned = any("waited for room" in warning for warning in report["warnings"])
    ok = say(name, "launches", syncs["launches"] == launches + 2, f"{syncs['launches']} of {launches + 2}")
    if wanted == "waits":
        ok &= say(name, "waits", slow > 0 and waits >= 0.8 * slow and 0.7 * slow_us <= wait_us <= 1.5 * slow_us and warned, text)
    elif wanted == "none":
        ok &= say(name, "waits", waits < 8 and not warned, text)
    else:
        print(f"NOTE {name}/seen: {text}")
    return ok


def main():
    if sys.argv[2:3] == ["--same"]:
        return 0 if same(sys.argv[1], sys.argv[3], sys.argv[4]) else 1
    return 0 if queue(sys.argv[1], sys.argv[2], sys.argv[3], (sys.argv + [""])[4]) else 1


if __name__ == "__main__":
    sys.exit(main())
