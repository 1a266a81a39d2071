#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the syncs of PyTorch profiler traces, apart from the importer: whole document, plain loops, the rules of
synccount(7) written down a second time. expected.json holds what it says of the files in data/.

    count_kineto.py data/*.json.gz > expected.json
    count_kineto.py --check expected.json data/*.json.gz
"""
import collections
import gzip
import json
import os
import re
import sys

STREAM_SYNC = {"cudaStreamSynchronize", "cuStreamSynchronize"}
EVENT_SYNC = {"cudaEventSynchronize", "cuEventSynchronize"}
DEVICE_SYNC = {"cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"}
COPY_ASYNC = {"cudaMemcpyAsync", "cudaMemcpy2DAsync", "cudaMemcpyPeerAsync"}
COPY = {"cudaMemcpy", "cudaMemcpy2D"}
MEMSET_ASYNC = {"cudaMemsetAsync"}
FREE_OF_POINTER = {"cudaFree", "cudaFreeHost"}  # which pointer is not in the trace
LAUNCH = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch"}
QUERY = {"cudaEventQuery", "cudaStreamQuery"}
COUNTED = STREAM_SYNC | EVENT_SYNC | DEVICE_SYNC | COPY_ASYNC | COPY | MEMSET_ASYNC | FREE_OF_POINTER | LAUNCH | QUERY


def is_cuda(name):
    return name.startswith("cuda") or (name.startswith("cu") and name[2:3].isupper())


def end_of(event):
    return event["ts"] + event.get("dur", 0)


def innermost(operators, call):
    """The operator that began last of those that the call lies in; times are whole microseconds in old traces."""
    inside = [o for o in operators if o["ts"] <= call["ts"] < end_of(o)]
    return max(inside, key=lambda o: (o["ts"], -o.get("dur", 0)), default=None)


def count_thread(calls, copies, stream_of_sync, operators):
    n = collections.Counter()
    follow = None  # the stream on which a synchronise would be part of the sync before it, or settle an uncertain one
    settles = None
    waiting = []  # streams with device-to-host copies that nobody waited for
    upload = None
    copied = None  # stream and operator of the last copy
    for call in calls:
        name = call["name"]
        if name not in COUNTED:
            continue
        n["api_calls"] += 1
        copy = copies.get(call["args"].get("correlation"))
        if name in LAUNCH:
            n["launches"] += 1
            n["submissions"] += 1
            follow = settles = upload = None
        elif name in MEMSET_ASYNC:
            # Without device work the size is not known; either way it does not block.
            n["submissions"] += 1
            follow = settles = upload = None
        elif name in COPY_ASYNC | COPY:
            n["submissions"] += 1
            follow = settles = upload = None
            if copy is None:
                n["uncertain"] += 1
                settles = "unknown"
                continue
            kind, src, dst = re.match(r"Memcpy (\w+) \((.+) -> (.+)\)", copy["name"]).groups()
            stream = (copy["args"].get("context"), copy["args"]["stream"])
            copied = (stream, innermost(operators, call))
            to_host = kind in ("DtoH", "AtoH", "HtoH")
            if kind in ("DtoD", "PtoP"):
                continue
            if name in COPY or (to_host and dst == "Pageable"):
                n["syncs"] += 1
                n["copy" if name in COPY else "pageable"] += 1
                if to_host:
                    n["read_backs"] += 1
                    follow = stream
                waiting = [s for s in waiting if s != stream]
            elif to_host:
                waiting = [s for s in waiting if s != stream] + [stream]
            elif kind in ("HtoD", "HtoA"):
                upload = stream
        elif name in STREAM_SYNC:
            stream = stream_of_sync.get(call["args"].get("correlation"))
            if stream is None and copied and copied[1] is not None and innermost(operators, call) is copied[1]:
                stream = copied[0]
            if follow is not None and stream == follow:
                follow = None
                continue
            if follow is not None and stream is None:
                n["uncertain"] += 1
            if settles is not None and stream == settles:
                n["uncertain"] -= 1
            n["syncs"] += 1
            n["explicit"] += 1
            if stream is not None and stream in waiting:
                n["read_backs"] += 1
                waiting.remove(stream)
            elif stream is not None and stream == upload:
                n["blocking_uploads"] += 1
            follow = settles = upload = None
        elif name in DEVICE_SYNC | EVENT_SYNC:
            n["syncs"] += 1
            n["explicit"] += 1
            n["read_backs"] += bool(waiting)
            if name in DEVICE_SYNC:
                waiting = []
            elif waiting:
                waiting.pop()
            follow = settles = upload = None
        elif name in FREE_OF_POINTER:
            n["uncertain"] += 1
    return n


def count_file(path):
    with gzip.open(path, "rt") as file:
        document = json.load(file)
    events = document["traceEvents"] if isinstance(document, dict) else document
    whole = [e for e in events if e.get("ph") == "X"]
    host = [e for e in whole if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    calls = [e for e in host if is_cuda(e["name"])]
    copies = {e["args"]["correlation"]: e for e in whole if e.get("cat") == "gpu_memcpy"}
    stream_of_sync = {
        e["args"]["correlation"]: (e["args"].get("context"), e["args"]["stream"])
        for e in whole
        if e.get("cat") == "cuda_sync" and e["name"] == "Stream Sync"
    }
    steps = [e for e in whole if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    total = collections.Counter(foreign_calls=len(host) - len(calls), steps=len(steps))
    threads = collections.defaultdict(list)
    for call in calls:
        threads[call["pid"], call["tid"]].append(call)
    for key, list_ in threads.items():
        list_.sort(key=lambda e: (e["ts"], e["args"].get("correlation", 0)))
        operators = [e for e in whole if e.get("cat") == "cpu_op" and (e["pid"], e["tid"]) == key]
        total += count_thread(list_, copies, stream_of_sync, operators)
    names = ("syncs explicit copy pageable implicit read_backs blocking_uploads uncertain launches submissions api_calls "
             "foreign_calls steps").split()
    return {name: total[name] for name in names}


def main(arguments):
    expected = None
    if arguments[:1] == ["--check"]:
        with open(arguments[1]) as file:
            expected = json.load(file)
        arguments = arguments[2:]
    counted = {os.path.basename(path): count_file(path) for path in sorted(arguments)}
    if expected is None:
        json.dump(counted, sys.stdout, indent=1)
        print()
    elif counted != expected:
        print("counted", json.dumps(counted, indent=1), "expected", json.dumps(expected, indent=1), sep="\n")
        return 1
    return 0


sys.exit(main(sys.argv[1:]))
