#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs program.py, whose waits are known, under PyTorch's warn mode, Nsight Systems' rule cuda_api_sync, torch.profiler
and synccount, and prints what each saw of them as a Markdown table.

    compare.py [--synccount PATH] [--nsys PATH|none] [--keep FOLDER] [--from FOLDER] [--check]

--keep: the tools' own output stays in FOLDER. --from: no program is run; the table is made of such a folder. --check: exit 1
unless synccount saw what it claims to (all but the spin on mapped memory, which no CUDA call shows). Exit 3 if nothing could
be measured.
"""
import argparse
import csv
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "program.py")
# kind: waits made, how a person would call them
KINDS = {
    "item": (20, "`.item()`"),
    "event": (5, "`Event.synchronize()`"),
    "device": (3, "`torch.cuda.synchronize()`"),
    "pageable_copy": (4, "`copy_(non_blocking=True)` to pageable memory"),
    "free": (2, "cudaFree by `empty_cache()`"),
    "poll": (1, "poll loop over `Event.query()`"),
    "mapped_spin": (1, "spin on mapped memory that a kernel writes"),
    "no_wait": (0, "none: launches, pinned copies, event record, stream wait"),
}
CLAIMED = [kind for kind in KINDS if kind != "mapped_spin"]


class NotMeasured(Exception):
    pass


def run(command, name, folder):
    with open(os.path.join(folder, name + ".log"), "w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, timeout=300, check=False)
    with open(os.path.join(folder, name + ".out"), "w", encoding="utf-8") as out:
        out.write(done.stdout)
    if done.returncode != 0:
        with open(os.path.join(folder, name + ".log"), encoding="utf-8", errors="replace") as log:
            lines = [line.strip() for line in log.read().splitlines() + done.stdout.splitlines() if line.strip()]
        raise NotMeasured(f"{name}: status {done.returncode}: {lines[-1] if lines else 'no output'}")
    return done.stdout


def within(ranges, time):
    """The kind of the range that a time lies in; None outside all of them."""
    return next((kind for kind, (start, end) in ranges.items() if start <= time <= end), None)


def tally(ranges, times):
    counts = dict.fromkeys(KINDS, 0)
    for time in times:
        kind = within(ranges, time)
        if kind is not None:
            counts[kind] += 1
    missing = [kind for kind in KINDS if kind not in ranges]
    if missing:
        raise NotMeasured(f"no range of {', '.join(missing)}")
    return counts


# ---- the detectors: measure() runs one, read() counts what it said ---------------------------------------------------


class WarnMode:
    title = "warn mode"

    def measure(self, options, folder):
        run([sys.executable, PROGRAM, "--warn", os.path.join(folder, "warn.json")], "warn", folder)

    def read(self, folder):
        with open(os.path.join(folder, "warn.json"), encoding="utf-8") as file:
            return json.load(file)


class NsightSystems:
    title = "nsys cuda_api_sync"

    def measure(self, options, folder):
        if options.nsys == "none":
            raise NotMeasured("left out")
        nsys = options.nsys or find_nsys()
        if nsys is None:
            raise NotMeasured("nsys was not found")
        report = os.path.join(folder, "nsys")
        run([nsys, "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true",
             "--output=" + report, sys.executable, PROGRAM], "nsys", folder)
        run([nsys, "export", "--type=sqlite", "--force-overwrite=true", "--output=" + report + ".sqlite",
             report + ".nsys-rep"], "nsys-export", folder)
        run([nsys, "analyze", "--rule", "cuda_api_sync:rows=-1", "--format", "csv", report + ".sqlite"], "nsys-analyze",
            folder)

    def read(self, folder):
        with sqlite3.connect(f"file:{os.path.join(folder, 'nsys.sqlite')}?mode=ro", uri=True) as database:
            rows = database.execute(
                "SELECT COALESCE(e.text, s.value), e.start, e.end FROM NVTX_EVENTS e LEFT JOIN StringIds s ON e.textId = s.id"
            ).fetchall()
        ranges = {name[5:]: (start, end) for name, start, end in rows if name and name.startswith("wait:")}
        with open(os.path.join(folder, "nsys-analyze.out"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        header = next((i for i, line in enumerate(lines) if line.startswith("Duration (ns),")), None)
        if header is None:
            raise NotMeasured("nsys analyze printed no table")
        times = [int(row["Start (ns)"]) for row in csv.DictReader(lines[header:]) if (row["Start (ns)"] or "").isdigit()]
        return tally(ranges, times)


class Profiler:
    title = "torch.profiler"

    def measure(self, options, folder):
        run([sys.executable, PROGRAM, "--profile", os.path.join(folder, "profile.json")], "profile", folder)

    def read(self, folder):
        with open(os.path.join(folder, "profile.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        ranges = {e["name"][5:]: (float(e["ts"]), float(e["ts"]) + float(e["dur"])) for e in events
                  if e.get("cat") == "user_annotation" and str(e.get("name", "")).startswith("wait:")}
        # What a reader of the trace finds when looking for waits by name.
        calls = [float(e["ts"]) for e in events
                 if e.get("cat") in ("cuda_runtime", "cuda_driver") and "Synchronize" in e.get("name", "")]
        return tally(ranges, calls)


class Synccount:
    title = "synccount"

    def measure(self, options, folder):
        run([options.synccount, "run", "--format", "json", "-o", os.path.join(folder, "synccount.json"), "--",
             sys.executable, PROGRAM], "synccount", folder)

    def read(self, folder):
        with open(os.path.join(folder, "synccount.json"), encoding="utf-8") as file:
            report = json.load(file)
        ranges = {r["name"][5:]: r for p in report["processes"] for r in p["ranges"] if r["name"].startswith("wait:")}
        if set(ranges) != set(KINDS):
            raise NotMeasured(f"ranges {sorted(ranges)} in the report")
        # Poll waits stand beside the count of syncs: they are told all the same.
        return {kind: ranges[kind]["syncs"]["total"] + ranges[kind]["poll_waits"] for kind in KINDS}


def find_nsys():
    candidates = [shutil.which("nsys")] + sorted(
        glob.glob("/opt/nvidia/nsight-systems/*/bin/nsys")
        + glob.glob("/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys") + ["/usr/local/cuda/bin/nsys"])
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def table(found):
    titles = [detector.title for detector, _ in found]
    print("| waits | made | " + " | ".join(titles) + " |")
    print("|---|---|" + "---|" * len(titles))
    for kind, (made, text) in KINDS.items():
        cells = ["not measured" if isinstance(counts, str) else
                 f"{counts[kind]}" if counts[kind] == made else f"**{counts[kind]}**" for _, counts in found]
        print(f"| {text} | {made} | " + " | ".join(cells) + " |")
    print("\nBold: not what was made. A poll wait is told beside the syncs by synccount, never in their count. Of torch.profiler: "
          "calls whose name\nholds \"Synchronize\". A spin on mapped memory makes no call that could be seen.")
    for detector, counts in found:
        if isinstance(counts, str):
            print(f"\n{detector.title} was not measured: {counts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--synccount", default=os.path.join(HERE, "..", "..", "build", "bin", "synccount"))
    parser.add_argument("--nsys")
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.source or options.keep or temporary
        if not options.source:
            os.makedirs(folder, exist_ok=True)
        for detector in (WarnMode(), NsightSystems(), Profiler(), Synccount()):
            try:
                if not options.source:
                    detector.measure(options, folder)
                found.append((detector, detector.read(folder)))
            except (NotMeasured, OSError, ValueError, KeyError, sqlite3.Error, subprocess.TimeoutExpired) as why:
                found.append((detector, str(why) or type(why).__name__))
    table(found)
    ours = found[-1][1]
    if isinstance(ours, str):
        return 3
    wrong = [kind for kind in CLAIMED if ours[kind] != KINDS[kind][0]]
    if wrong:
        print(f"\nsynccount did not see what it claims to: {', '.join(wrong)}")
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
