# SPDX-License-Identifier: Apache-2.0
"""Syncs from every kind of place. A line that ends with "# @FUNCTION N" syncs N times, in that function."""
import asyncio
import atexit
import ctypes
import os
import sys
import threading

rt = ctypes.CDLL(os.environ["SC_CUDART"])
rt.cudaFree(None)
for _ in range(1000):  # the offsets are checked in a pending call, which the main thread makes soon
    pass


def leaf():
    rt.cudaDeviceSynchronize()  # @leaf 4


def nested(depth):
    if depth:
        return nested(depth - 1)
    return leaf()


def generator():
    for i in range(3):
        rt.cudaDeviceSynchronize()  # @generator 3
        yield i


async def coroutine():
    await asyncio.sleep(0)
    rt.cudaDeviceSynchronize()  # @coroutine 1


def handler():
    try:
        raise ValueError("expected")
    except ValueError:
        rt.cudaDeviceSynchronize()  # @handler 1
    finally:
        rt.cudaDeviceSynchronize()  # @handler 1


def long_expression():
    return (
        1
        + rt.cudaDeviceSynchronize()  # @long_expression 1
        + 2
    )


def größe_名前():
    rt.cudaDeviceSynchronize()  # @größe_名前 1


class Layer:
    def forward(self):
        rt.cudaDeviceSynchronize()  # @forward 2

    @staticmethod
    def helper():
        rt.cudaDeviceSynchronize()  # @helper 1


def recursion(depth):
    if depth == 0:
        rt.cudaDeviceSynchronize()  # @recursion 1
    else:
        recursion(depth - 1)


def worker():
    for _ in range(10):
        rt.cudaDeviceSynchronize()  # @worker 10


def spin(stop):
    while not stop.is_set():
        pass


def beside_a_spinning_thread():
    sys.setswitchinterval(0.1)  # what each wait for the interpreter's lock takes: see run.py
    stop = threading.Event()
    spinner = threading.Thread(target=spin, args=(stop,))
    busy = threading.Thread(target=worker)
    spinner.start()
    busy.start()
    busy.join()
    stop.set()
    spinner.join()


def at_exit():
    rt.cudaDeviceSynchronize()  # @at_exit 1


atexit.register(at_exit)
for _ in range(3):
    nested(5)
nested(300)
list(generator())
asyncio.run(coroutine())
handler()
long_expression()
größe_名前()
Layer().forward()
Layer().forward()
Layer.helper()
recursion(400)
[rt.cudaDeviceSynchronize() for _ in range(2)]  # @<listcomp>|<module> 2
(lambda: rt.cudaDeviceSynchronize())()  # @<lambda> 1
for lines in range(4):  # code at the same address again and again, with another line each time
    exec(compile("\n" * lines + "rt.cudaDeviceSynchronize()", "made-up.py", "exec"))
beside_a_spinning_thread()
rt.cudaDeviceSynchronize()  # @<module> 1
# After the interpreter is gone: no Python, and no crash.
ctypes.CDLL(None).on_exit(rt.cudaDeviceSynchronize, None)
sys.stdout.flush()
