#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Known waits of every class, each kind in an NVTX range of its own ("wait:item" ...), for bench/detectors/compare.py.

    program.py [--warn FILE | --profile FILE]

--warn: under torch.cuda.set_sync_debug_mode("warn"), writes how many warnings each kind raised. --profile: under
torch.profiler, writes its Chrome trace. Without either it only runs, for a tool from outside.
"""
import argparse
import json
import warnings

import torch

BIG = 64 << 20  # a block that the allocator keeps in a segment of its own


class Mapped:
    """Pinned host memory as the device sees it."""

    def __init__(self, host):
        self.__cuda_array_interface__ = {
            "shape": tuple(host.shape), "typestr": "<i4", "data": (host.data_ptr(), False), "version": 2,
        }


class Program:
    def __init__(self):
        self.x = torch.ones(1024, device="cuda")
        self.pageable = torch.empty(1024)
        self.pinned = torch.empty(1024).pin_memory()
        self.flag = torch.zeros(1, dtype=torch.int32).pin_memory()
        self.flag_on_device = torch.as_tensor(Mapped(self.flag), device="cuda")
        if self.flag_on_device.data_ptr() != self.flag.data_ptr():
            raise SystemExit("PyTorch made a copy of the mapped memory")

    def item(self):  # 20
        for _ in range(20):
            self.x.sum().item()

    def event(self):  # 5
        for _ in range(5):
            self.x.add_(1)
            event = torch.cuda.Event()
            event.record()
            event.synchronize()

    def device(self):  # 3
        for _ in range(3):
            self.x.add_(1)
            torch.cuda.synchronize()

    def pageable_copy(self):  # 4
        for _ in range(4):
            self.x.add_(1)
            self.pageable.copy_(self.x, non_blocking=True)

    def free(self):  # 2
        for _ in range(2):
            block = torch.empty(BIG, dtype=torch.uint8, device="cuda")
            del block
            torch.cuda.empty_cache()

    def poll(self):  # 1
        event = torch.cuda.Event()
        torch.cuda._sleep(20_000_000)
        event.record()
        if event.query():
            raise SystemExit("the device was not busy: no poll to detect")
        while not event.query():
            pass

    def mapped_spin(self):  # 1
        self.flag.zero_()
        torch.cuda._sleep(1_000_000)
        self.flag_on_device.fill_(1)
        seen = self.flag.numpy()
        while seen[0] == 0:
            pass

    def no_wait(self):  # 0: what a detector must not report
        for _ in range(10):
            self.x.add_(1)
            self.pinned.copy_(self.x, non_blocking=True)
            self.x.copy_(self.pinned, non_blocking=True)
            torch.cuda.Event().record()
        torch.cuda.current_stream().wait_event(torch.cuda.current_stream().record_event())


KINDS = {
    "item": 20, "event": 5, "device": 3, "pageable_copy": 4, "free": 2, "poll": 1, "mapped_spin": 1, "no_wait": 0,
}


def run(program, around):
    for kind in KINDS:
        torch.cuda.nvtx.range_push("wait:" + kind)
        with around(kind):
            getattr(program, kind)()
        torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()  # between the ranges: the next kind begins with nothing outstanding


class Warned:
    counts = {}

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        self.caught = warnings.catch_warnings(record=True)
        self.list = self.caught.__enter__()
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")

    def __exit__(self, *exception):
        torch.cuda.set_sync_debug_mode("default")
        Warned.counts[self.kind] = sum("synchronizing CUDA operation" in str(w.message) for w in self.list)
        self.caught.__exit__(*exception)


class Plain:
    def __init__(self, kind):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warn")
    parser.add_argument("--profile")
    options = parser.parse_args()
    program = Program()
    for kind in KINDS:  # kernels are loaded, the allocator's pools are made
        getattr(program, kind)()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    if options.warn:
        run(program, Warned)
        with open(options.warn, "w", encoding="utf-8") as file:
            json.dump(Warned.counts, file)
    elif options.profile:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            run(program, lambda kind: torch.profiler.record_function("wait:" + kind))
        profile.export_chrome_trace(options.profile)
    else:
        run(program, Plain)
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name()}))


main()
