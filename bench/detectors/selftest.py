#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py on hand-made outputs of the four detectors: what it counts, and that --check can fail."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("item", "event", "device", "pageable_copy", "free", "poll", "mapped_spin", "no_wait")
MADE = dict(zip(KINDS, (20, 5, 3, 4, 2, 1, 1, 0)))


def write(folder, ours):
    with open(folder + "/warn.json", "w", encoding="utf-8") as file:
        json.dump(dict(dict.fromkeys(KINDS, 0), item=20), file)
    # Each kind has 1000 ns; one call outside of every range.
    with sqlite3.connect(folder + "/nsys.sqlite") as database:
        database.execute("CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, textId INT)")
        database.execute("CREATE TABLE StringIds (id INT, value TEXT)")
        for i, kind in enumerate(KINDS):
            database.execute("INSERT INTO StringIds VALUES (?, ?)", (i, "wait:" + kind))
            database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, NULL, ?)", (i * 2000, i * 2000 + 1000, i))
    with open(folder + "/nsys-analyze.out", "w", encoding="utf-8") as file:
        file.write("Processing...\nDuration (ns),Start (ns),PID,TID,API Name\n")
        for time in [5] * 20 + [2005] * 5 + [1500]:
            file.write(f"10,{time},1,1,cudaStreamSynchronize_v3020\n")
    events = [{"ph": "X", "cat": "user_annotation", "name": "wait:" + kind, "ts": i * 20, "dur": 10}
              for i, kind in enumerate(KINDS)]
    events += [{"ph": "X", "cat": "cuda_runtime", "name": name, "ts": time, "dur": 1}
               for name, time in [("cudaDeviceSynchronize", 42.5)] * 3 + [("cudaFree", 82)] * 2 + [("cudaLaunchKernel", 3)]]
    with open(folder + "/profile.json", "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    ranges = [{"name": "wait:" + kind, "syncs": {"total": ours[kind] if kind != "poll" else 0},
               "poll_waits": ours[kind] if kind == "poll" else 0} for kind in KINDS]
    with open(folder + "/synccount.json", "w", encoding="utf-8") as file:
        json.dump({"processes": [{"ranges": ranges}]}, file)


def compare(folder):
    done = subprocess.run([sys.executable, HERE + "/compare.py", "--from", folder, "--check"], capture_output=True,
                          text=True, timeout=60, check=False)
    rows = {line.split(" | ")[0]: [cell.strip(" *|") for cell in line.split(" | ")[1:]]
            for line in done.stdout.splitlines() if line.startswith("| ")}
    return done.returncode, rows, done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, dict(MADE, mapped_spin=0))
        status, rows, text = compare(folder)
        expected = {
            "| `.item()`": ["20", "20", "20", "0", "20"],
            "| `Event.synchronize()`": ["5", "0", "5", "0", "5"],
            "| `torch.cuda.synchronize()`": ["3", "0", "0", "3", "3"],
            "| cudaFree by `empty_cache()`": ["2", "0", "0", "0", "2"],
            "| poll loop over `Event.query()`": ["1", "0", "0", "0", "1"],
            "| spin on mapped memory that a kernel writes": ["1", "0", "0", "0", "0"],
        }
        bad = [f"{name}: {rows.get(name)} instead of {cells}" for name, cells in expected.items() if rows.get(name) != cells]
        if status != 0:
            bad.append(f"status {status} of a good comparison")
    with tempfile.TemporaryDirectory() as folder:
        write(folder, dict(MADE, free=1))
        os.remove(folder + "/nsys-analyze.out")
        status, rows, text = compare(folder)
        if status != 1 or "what it claims to: free" not in text:
            bad.append(f"status {status} where synccount missed a free")
        if "nsys cuda_api_sync was not measured" not in text:
            bad.append("nothing said of a detector that did not run")
    with tempfile.TemporaryDirectory() as folder:
        status, rows, text = compare(folder)
        if status != 3:
            bad.append(f"status {status} of an empty folder")
    print("\n".join(bad) or "compare.py counts what its inputs say")
    return 1 if bad else 0


sys.exit(main())
