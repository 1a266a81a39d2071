#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a PyTorch profiler trace small enough to be committed: kernels get short names, and arguments that no sync
depends on are left out. No event is, and no time is changed.

    reduce_kineto.py IN.json.gz OUT.json.gz
"""
import gzip
import json
import sys

KEPT = {"correlation", "stream", "device", "context", "bytes", "External id", "name", "cuda_sync_kind"}


def main(source, target):
    with gzip.open(source, "rt") as file:
        document = json.load(file)
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] = event["name"][:16]
        if "args" in event:
            event["args"] = {key: value for key, value in event["args"].items() if key in KEPT}
    text = json.dumps(document, separators=(",", ":")).replace('},{"ph"', '},\n{"ph"')
    with open(target, "wb") as file:  # no name, no time: the same bytes each time
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=9) as packed:
            packed.write(text.encode())


main(*sys.argv[1:])
