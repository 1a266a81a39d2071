#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the syncs of an Nsight Systems export a second time, by the definitions and none of synccount's code.

count_nsys.py EXPORT.sqlite                 prints what it counted, as JSON
count_nsys.py EXPORT.sqlite SYNCCOUNT       also runs `SYNCCOUNT report --format json EXPORT.sqlite` and compares

Written for the calls that the test files hold; it refuses names that it was not told about, and that could wait.
"""
import json
import sqlite3
import subprocess
import sys
from collections import defaultdict

WAITS = {"cudaStreamSynchronize": "stream", "cudaDeviceSynchronize": "device", "cudaEventSynchronize": "event"}
LAUNCHES = {"cudaLaunchKernel", "cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernelExC", "cudaGraphLaunch"}
COPIES = {"cudaMemcpyAsync": True, "cudaMemcpy": False}
SETS = {"cudaMemsetAsync"}
QUERIES = {"cudaEventQuery", "cudaStreamQuery"}
HARMLESS = {"cuKernelGetAttribute", "cudaEventCreateWithFlags", "cudaEventDestroy", "cudaEventRecordWithFlags",
            "cudaEventRecord", "cudaGetFuncBySymbol", "cudaStreamGetCaptureInfo_v2", "cudaStreamIsCapturing",
            "cudaStreamWaitEvent", "cudaThreadExchangeStreamCaptureMode", "cudaMalloc", "cudaHostAlloc"}
HTOD, DTOH, DTOD = "CUDA_MEMCPY_KIND_HTOD", "CUDA_MEMCPY_KIND_DTOH", "CUDA_MEMCPY_KIND_DTOD"
PAGEABLE = "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE"


def rows(db, table):
    there = db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    db.row_factory = sqlite3.Row
    return [dict(r) for r in db.execute("SELECT * FROM %s" % table)] if there else []


def plain(name):
    """cudaLaunchKernel_v7000 -> cudaLaunchKernel; cudaStreamGetCaptureInfo_v2_v11030 keeps its _v2."""
    head, _, tail = name.rpartition("_v")
    return head if head and tail.isdigit() and len(tail) > 2 else name


def drain_gaps(ends, work):
    """Of syncs that ended at these times: from the last end of what was submitted before to the first start after."""
    gaps, seen = [], set()
    for end in ends:
        before = [w for w in work if w["submit"] < end]
        after = [w for w in work if w["submit"] >= end]
        if not before or not after:
            continue
        gap = min(w["start"] for w in after) - max(w["end"] for w in before)
        gaps.append(0 if len(before) in seen else max(gap, 0))
        seen.add(len(before))
    return gaps


def count_thread(calls, total):
    last = None  # what a stream synchronise directly after would be part of
    upload = None
    asking = False
    for call in calls:
        name, work = call["name"], call["work"]
        total["api_calls"] += name not in HARMLESS
        if name in HARMLESS:
            continue
        if name in QUERIES:
            total["poll_waits"] += asking and call["status"] == 0
            asking = call["status"] == 600
            continue
        asking = False
        if call["status"] != 0:
            total["failed"] += 1
        elif name in WAITS:
            stream = work and work["streamId"]
            if WAITS[name] == "stream" and last is not None and last == stream:
                total["wait_ns"] += call["end"] - call["start"]
                last = None
                continue
            total["explicit"] += 1
            total["blocking_uploads"] += WAITS[name] == "stream" and upload is not None and upload == stream
            total["wait_ns"] += call["end"] - call["start"]
            total["ends"].append(call["end"])
            last = upload = None
        elif name in LAUNCHES or name in SETS:
            total["launches"] += name in LAUNCHES
            last = upload = None
        elif name in COPIES:
            last = upload = None
            if work is None:
                total["uncertain"] += 1
                continue
            to_host = work["direction"] == DTOH
            if to_host and (work["dst"] == PAGEABLE or not COPIES[name]):
                total["pageable" if COPIES[name] else "copy"] += 1
                total["wait_ns"] += call["end"] - call["start"]
                total["ends"].append(call["end"])
                last = work["streamId"]
            elif work["direction"] == HTOD and not COPIES[name]:
                sys.exit("a blocking upload: teach me")
            elif work["direction"] == HTOD:
                upload = work["streamId"]
        else:
            sys.exit("I do not know what %s does" % name)


def count(path):
    db = sqlite3.connect("file:%s?immutable=1" % path, uri=True)
    names = {r["id"]: r["value"] for r in rows(db, "StringIds")}
    enum = {t: {r["id"]: r["name"] for r in rows(db, t)} for t in ("ENUM_CUDA_MEMCPY_OPER", "ENUM_CUDA_MEM_KIND",
                                                                   "ENUM_CUPTI_SYNC_TYPE")}
    calls = rows(db, "CUPTI_ACTIVITY_KIND_RUNTIME")
    only = {c["globalTid"] >> 24 for c in calls}
    process = lambda row: row["globalPid"] >> 24 if "globalPid" in row else next(iter(only))
    submitted, told, device_work = {}, {}, defaultdict(list)
    for call in calls:
        key = (call["globalTid"] >> 24, call["correlationId"])
        submitted[key] = min(call["start"], submitted.get(key, call["start"]))
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"):
        for row in rows(db, "CUPTI_ACTIVITY_KIND_" + kind):
            key = (process(row), row["correlationId"])
            if kind == "SYNCHRONIZATION":
                if not enum["ENUM_CUPTI_SYNC_TYPE"][row["syncType"]].endswith("STREAM_WAIT_EVENT"):
                    told[key] = row
                continue
            device_work[(process(row), row["deviceId"])].append(
                {"submit": submitted.get(key, row["start"]), "start": row["start"], "end": row["end"]})
            if kind == "MEMCPY":
                row["direction"] = enum["ENUM_CUDA_MEMCPY_OPER"][row["copyKind"]]
                row["dst"] = enum["ENUM_CUDA_MEM_KIND"][row["dstKind"]]
            if kind != "KERNEL":
                told[key] = row
    threads = defaultdict(list)
    for call in calls:
        call["name"] = plain(names[call["nameId"]])
        call["status"] = call.get("returnValue", 0)
        call["work"] = told.get((call["globalTid"] >> 24, call["correlationId"]))
        threads[call["globalTid"]].append(call)
    result = {}
    for thread, list_ in sorted(threads.items()):
        key = thread >> 24
        total = result.setdefault(key, defaultdict(int, ends=[]))
        count_thread(sorted(list_, key=lambda c: c["start"]), total)
    for key, total in result.items():
        devices = [d for p, d in device_work if p == key]
        ends = sorted(total.pop("ends"))
        gaps = drain_gaps(ends, device_work[(key, devices[0])]) if len(devices) == 1 else []
        total["drain_ns"] = sum(gaps) if gaps else None
        total["pid"] = key & 0xffffff
    return sorted(result.values(), key=lambda t: t["pid"])


def same(counted, process):
    syncs = process["syncs"]
    pairs = [(counted["explicit"], syncs["by_class"]["explicit"]), (counted["copy"], syncs["by_class"]["copy"]),
             (counted["pageable"], syncs["by_class"]["pageable"]), (0, syncs["by_class"]["implicit"]),
             (counted["blocking_uploads"], syncs["blocking_uploads"]), (counted["poll_waits"], syncs["poll_waits"]),
             (counted["uncertain"], syncs["uncertain"]), (counted["failed"], syncs["failed"]),
             (counted["launches"], syncs["launches"]), (counted["api_calls"], syncs["api_calls"]),
             (round(counted["wait_ns"]), round(syncs["wait_us"] * 1000)),
             (counted["drain_ns"], round(syncs["drain_gap_total_us"] * 1000) if "drain_gap_total_us" in syncs else None)]
    return all(a == b for a, b in pairs), pairs


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    counted = count(sys.argv[1])
    print(json.dumps(counted, indent=1, sort_keys=True))
    if len(sys.argv) == 2:
        return
    report = subprocess.run([sys.argv[2], "report", "--format", "json", sys.argv[1]], check=True, capture_output=True)
    processes = sorted(json.loads(report.stdout)["processes"], key=lambda p: p["pid"])
    if [c["pid"] for c in counted] != [p["pid"] for p in processes]:
        sys.exit("other processes: %s" % [p["pid"] for p in processes])
    for one, process in zip(counted, processes):
        equal, pairs = same(one, process)
        if not equal:
            sys.exit("process %d differs, counted here and there: %s" % (one["pid"], pairs))
    print("synccount counts the same")


main()
