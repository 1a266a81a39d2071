#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python programs that know what they do, for tests/gpu/parts/company.sh: jax, torch, triton or cupy.

Each warms up, then makes its calls between cuProfilerStart and cuProfilerStop (run it with --capture-range
cudaProfilerApi), and prints the counts that its report must show as one line of JSON for expect_company.py. What a line
of the source does is written behind it: "# @CLASS COUNT".
"""
import contextlib
import ctypes
import inspect
import json
import os
import re
import sys
import threading


@contextlib.contextmanager
def window():
    """cuProfilerStart to cuProfilerStop, of the driver itself: every library has that."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def mark(name):
        status = getattr(cuda, name)()
        if status == 201:  # no context is current on this thread
            context = ctypes.c_void_p()
            cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            cuda.cuCtxSetCurrent(context)
            status = getattr(cuda, name)()
        if status:
            raise SystemExit(f"{name}: {status}")

    mark("cuProfilerStart")
    yield
    mark("cuProfilerStop")


def tagged(function):
    """{"FILE:LINE": [class, count]} of a function's source, and the sums by class."""
    lines, first = inspect.getsourcelines(function)
    places, sums = {}, {"explicit": 0, "copy": 0, "pageable": 0, "implicit": 0}
    for number, line in enumerate(lines, first):
        for cls, count in re.findall(r"# @(\w+) (\d+)$", line.rstrip()):
            places[f"{os.path.basename(__file__)}:{number}"] = [cls, int(count)]
            sums[cls] += int(count)
    return places, sums


def expect(function, **more):
    places, sums = tagged(function)
    return dict({"total": sum(sums.values()), "by_class": sums, "lines": places}, **more)


def mapped(name):
    with open("/proc/self/maps", encoding="utf-8") as file:
        return sorted({line.split(maxsplit=5)[5].strip() for line in file if name in line})


def of_wheel(paths):
    return any("/site-packages/" in path or "/dist-packages/" in path for path in paths)


def threads():
    found = {}
    for tid in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{tid}/comm", encoding="utf-8") as file:
            found[tid] = file.read().rstrip("\n")
    return found


# ---- JAX: 20 scalar reads, copied by threads of a pool, which a host function tells the reader of ------------------


def jax():
    import jax as library

    compiled = library.jit(lambda x: x * 2 + 1)
    values = [compiled(float(i)) for i in range(22)]
    for value in values:
        value.block_until_ready()
    platforms = {device.platform for device in values[0].devices()}
    if platforms != {"gpu"}:
        raise SystemExit(f"JAX runs on {platforms}, not on a GPU")
    float(values[20]), float(values[21])
    with window():
        total = sum(float(value) for value in values[:20])
    if total != sum(2 * i + 1 for i in range(20)):
        raise SystemExit(f"wrong sum {total}")
    pool = {tid: name for tid, name in threads().items() if int(tid) != os.getpid()}
    # Where the host waits is no CUDA call, so no class and no line has a sync.
    return {
        "processes": [{"total": 0, "d2h_copies": 20, "launches": 0, "d2h_threads": pool}],
        "warnings": ["20 device-to-host copies", "Hidden waits are not in the count"],
        "notes": [f"jax {library.__version__}; libcudart: {mapped('libcudart') or 'none is loaded'}"],
    }


# ---- PyTorch: libcudart from a wheel ------------------------------------------------------------------------------


def torch_calls(torch, x, event, graph, host):
    for _ in range(20):
        x[0].item()  # @explicit 20
    for _ in range(6):
        x.tolist()  # @pageable 6
    for _ in range(5):
        x.add_(1)
        event.record()
        event.synchronize()  # @explicit 5
    for _ in range(3):
        x.add_(1)
        torch.cuda.synchronize()  # @explicit 3
    for _ in range(4):
        host.copy_(x, non_blocking=True)  # @pageable 4
    for _ in range(7):
        x.add_(1)
        x.nonzero()  # @explicit 7
    for _ in range(9):
        graph.replay()
        torch.cuda.current_stream().synchronize()  # @explicit 9


def torch_thread(x, tids):
    tids.append(threading.get_native_id())
    for _ in range(11):
        x[1].item()  # @explicit 11


def torch():
    import torch as library

    x = library.ones(64, device="cuda")
    y = library.zeros(64, device="cuda")
    event, graph, host = library.cuda.Event(), library.cuda.CUDAGraph(), library.empty(64)
    with library.cuda.graph(graph):
        y.add_(1)
    torch_calls(library, x, event, graph, host)
    library.cuda.synchronize()
    tids = []
    thread = threading.Thread(target=torch_thread, args=(x, tids))
    with window():
        torch_calls(library, x, event, graph, host)
        thread.start()
        thread.join()
    if y[0].item() != 18:
        raise SystemExit(f"the graph added {y[0].item()} times instead of 18")
    wheel = mapped("libcudart")
    first, second = expect(torch_calls), expect(torch_thread)
    return {
        "processes": [
            {
                "total": first["total"] + second["total"],
                "by_class": {cls: first["by_class"][cls] + second["by_class"][cls] for cls in first["by_class"]},
                "lines": {**first["lines"], **second["lines"]},
                "threads": {str(os.getpid()): {"syncs": first["total"]}, str(tids[0]): {"syncs": second["total"]}},
            }
        ],
        "notes": [f"torch {library.__version__}; libcudart {'from a wheel' if of_wheel(wheel) else 'not from a wheel'}: {wheel}"],
    }


# ---- Triton: launches through the driver, syncs through PyTorch ----------------------------------------------------


def triton_calls(torch, kernel, x):
    torch.cuda.nvtx.range_push("launches")
    for _ in range(10):
        kernel[(1,)](x, 64, BLOCK=64)
    torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_push("mixed")
    for _ in range(4):
        kernel[(1,)](x, 64, BLOCK=64)
        x[0].item()  # @explicit 4
    torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()  # @explicit 1


def triton():
    import torch as library

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import company_triton

    x = library.zeros(64, device="cuda")
    triton_calls(library, company_triton.add_one, x)
    with window():
        triton_calls(library, company_triton.add_one, x)
    if x[3].item() != 28:
        raise SystemExit(f"the kernel added {x[3].item()} times instead of 28")
    ranges = {
        "launches": {"syncs": 0, "launches": 10, "occurrences": 1},
        "mixed": {"syncs": 4, "launches": 4, "occurrences": 1},
    }
    return {
        "processes": [expect(triton_calls, launches=14, ranges=ranges)],
        "notes": [f"triton {company_triton.triton.__version__}"],
    }


# ---- CuPy ---------------------------------------------------------------------------------------------------------


def cupy_calls(cupy, a, pinned, event, stream, graph):
    for _ in range(20):
        a.get()  # @pageable 20
    for _ in range(20):
        a[0].item()  # @pageable 20
    for _ in range(7):
        float(a[1])  # @pageable 7
    for _ in range(6):
        a.get(out=pinned)  # @explicit 6
    for _ in range(5):
        a += 1
        event.record()
        event.synchronize()  # @explicit 5
    for _ in range(3):
        a += 1
        cupy.cuda.Device().synchronize()  # @explicit 3
    for _ in range(2):
        memory = cupy.cuda.runtime.malloc(1 << 20)
        cupy.cuda.runtime.free(memory)  # @implicit 2
    for _ in range(9):
        graph.launch(stream)
        stream.synchronize()  # @explicit 9


def cupy():
    import cupy as library
    import cupyx

    a = library.zeros(64, dtype=library.float32)
    c = library.zeros(64, dtype=library.float32)
    pinned = cupyx.empty_pinned((64,), dtype=library.float32)
    event, stream = library.cuda.Event(disable_timing=True), library.cuda.Stream(non_blocking=True)
    library.cuda.Device().synchronize()
    with stream:
        c += 1
        stream.begin_capture()
        c += 1
        graph = stream.end_capture()
    cupy_calls(library, a, pinned, event, stream, graph)
    library.cuda.Device().synchronize()
    with window():
        cupy_calls(library, a, pinned, event, stream, graph)
    library.cuda.Device().synchronize()
    if float(c[5]) != 19 or float(a[0]) != 16:
        raise SystemExit(f"wrong results {float(c[5])}, {float(a[0])}")
    return {
        "processes": [expect(cupy_calls, launches=8 + 9)],
        "notes": [f"cupy {library.__version__}; libcudart: {mapped('libcudart') or 'linked statically'}"],
    }


def main():
    programs = {"jax": jax, "torch": torch, "triton": triton, "cupy": cupy}
    if len(sys.argv) != 2 or sys.argv[1] not in programs:
        print(__doc__, file=sys.stderr)
        return 2
    print(json.dumps(programs[sys.argv[1]]()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
