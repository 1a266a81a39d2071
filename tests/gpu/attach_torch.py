#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/parts/attach.sh runs: a PyTorch loop that knows its own syncs, and somebody who attaches to it.

loop LOG     turns of SYNCS syncs each on two threads, until SIGTERM; every turn checks its results against the first one's.
             Then writes the end of every turn (CLOCK_MONOTONIC, ns), thread by thread, and how many were wrong, to LOG
drive        starts a loop, attaches to it again and again while it runs at full speed, and compares; prints PASS and FAIL lines
"""
import argparse
import array
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

SYNCS = 4  # of a turn: three .item() and one .tolist()
THREADS = 2
WARM_UP = 2.0  # seconds that the loop runs before anybody looks
STALL_MS = 100


# ---- the loop


def turn(torch, tensors):
    x, weight = tensors
    with torch.cuda.nvtx.range("turn"):
        y = x @ weight
        first = (y.sum() * 0.5).item()
        highest = y.max().item()
        chosen = (y > 0).sum().item()
        row = y[0, :4].tolist()
    return first, highest, chosen, row


def run_turns(torch, index, ends, wrong, stop, ready):
    generator = torch.Generator(device="cuda").manual_seed(index)
    tensors = [torch.randn(256, 256, device="cuda", generator=generator) for _ in range(2)]
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        expected = turn(torch, tensors)
        ready.wait()
        while not stop.is_set():
            got = turn(torch, tensors)
            ends.append(time.monotonic_ns())
            if got != expected:
                wrong[index] += 1


def loop(options):
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    ready = threading.Barrier(THREADS + 1)
    ends = [array.array("q") for _ in range(THREADS)]
    wrong = [0] * THREADS
    threads = [
        threading.Thread(target=run_turns, args=(torch, i, ends[i], wrong, stop, ready)) for i in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    print("ready", flush=True)
    while not stop.is_set():
        stop.wait(0.05)
    for thread in threads:
        thread.join()
    with open(options.log, "w", encoding="utf-8") as file:
        json.dump({"ends": [list(one) for one in ends], "wrong": wrong}, file)
    return 0


# ---- who attaches


class Verdicts:
    def __init__(self, name):
        self.name, self.failed = name, False

    def say(self, good, what, text):
        self.failed |= not good
        print(f"{'PASS' if good else 'FAIL'} {self.name}-{what}: {text}", flush=True)


def start_loop(options, log):
    environment = dict(os.environ)
    for name in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "SYNCCOUNT_DORMANT"):
        environment.pop(name, None)
    if options.mode == "dormant":
        environment.update(LD_PRELOAD=options.tracer, SYNCCOUNT_DORMANT="1")
    command = options.loop.split() if options.loop else [sys.executable, os.path.abspath(__file__), "loop"]
    process = subprocess.Popen(command + [log], stdout=subprocess.PIPE, text=True, env=environment)
    if process.stdout.readline().strip() != "ready":
        process.wait()
        raise SystemExit(f"the loop did not start: status {process.returncode}")
    time.sleep(WARM_UP)
    return process


def attach(options, pid, report):
    command = [options.synccount, "attach", "--seconds", str(options.seconds), "--format", "json", "-o", report]
    if options.mode == "inject":
        command.append("--inject")
    began = time.monotonic_ns()
    with subprocess.Popen(command + [str(pid)], stderr=subprocess.PIPE, text=True) as process:
        said, counting = [], None
        for line in process.stderr:
            said.append(line.rstrip())
            if "counting in process" in line:
                counting = time.monotonic_ns()
        status = process.wait()
    return {"began": began, "counting": counting, "ended": time.monotonic_ns(), "status": status, "said": said}


def turns_within(log, low, high):
    """Turns that lie in it as a whole, and turns of which at least a part does."""
    whole = touched = 0
    for ends in log["ends"]:
        for begin, end in zip(ends, ends[1:]):
            whole += low <= begin and end <= high
            touched += begin <= high and end >= low
    return whole, touched


def longest(log, windows, inside):
    """Of the turns that meet one of the windows, or of those that meet none, in ms."""
    most = 0
    for ends in log["ends"]:
        first = ends[0] + WARM_UP * 0.5e9
        for begin, end in zip(ends, ends[1:]):
            meets = any(begin <= high and end >= low for low, high in windows)
            if meets == inside and begin >= first:
                most = max(most, end - begin)
    return most / 1e6


def quick_turn(log, low, high):
    """The time of the quickest twentieth of the turns, in us: two threads that hand the interpreter's lock to each other have
    more than one rhythm, so that the median jumps by half without any cause of ours; what each turn has to pay does not."""
    times = sorted(
        end - begin for ends in log["ends"] for begin, end in zip(ends, ends[1:]) if low <= begin and end <= high
    )
    return times[len(times) // 20] / 1e3 if times else float("nan")


def judge_counts(options, verdicts, log, times):
    bad, total, ranges = [], 0, 0
    for number, one in enumerate(times):
        if one["status"] != 0 or one["counting"] is None:
            bad.append(f"#{number + 1} ended with {one['status']}: {' | '.join(one['said'])[-300:]}")
            continue
        with open(one["report"], encoding="utf-8") as file:
            report = json.load(file)
        process = report["processes"][0]
        syncs = process["syncs"]["total"]
        # It counted at least from its line to its seconds, and at most from its start to its end.
        least, _ = turns_within(log, one["counting"], one["counting"] + int(options.seconds * 1e9))
        _, most = turns_within(log, one["began"], one["ended"])
        total += syncs
        if not SYNCS * least <= syncs <= SYNCS * most or least == 0:
            bad.append(f"#{number + 1}: {syncs} syncs, expected {SYNCS * least} to {SYNCS * most}")
        if not process["attached_late"]:
            bad.append(f"#{number + 1} does not say that it came late")
        turns = [one for one in process["ranges"] if one["path"] == "turn"]
        if options.mode == "dormant":
            if not turns or turns[0]["syncs"]["min"] != SYNCS or turns[0]["syncs"]["max"] != SYNCS:
                bad.append(f"#{number + 1}: the range 'turn' has {turns[0]['syncs'] if turns else 'no occurrence'}")
            else:
                ranges += turns[0]["occurrences"]
        elif turns or not any("ranges not available" in warning for warning in report["warnings"]):
            bad.append(f"#{number + 1} does not say that ranges are not available")
    text = f"{len(times)} times, {total} syncs" + (f", {SYNCS} in each of {ranges} turns" if ranges else "")
    verdicts.say(not bad, "counts", "; ".join(bad) if bad else text)


def judge(options, verdicts, log, times, status):
    judge_counts(options, verdicts, log, times)
    verdicts.say(status == 0, "program", f"it ended with {status}")
    turns = sum(len(ends) for ends in log["ends"])
    verdicts.say(sum(log["wrong"]) == 0, "results", f"{sum(log['wrong'])} of {turns} turns gave another result")
    windows = [(one["began"], one["ended"]) for one in times]
    without, with_us = longest(log, windows, False), longest(log, windows, True)
    verdicts.say(
        with_us <= without + STALL_MS,
        "stall",
        f"longest turn {with_us:.1f} ms while somebody attached, {without:.1f} ms otherwise",
    )
    before = quick_turn(log, min(ends[0] for ends in log["ends"]) + int(WARM_UP * 0.5e9), times[0]["began"])
    # A cost of the first attach that stays is in both of these; one that is in the last alone is no cost of attaching once.
    between = quick_turn(log, times[0]["ended"], times[1]["began"]) if len(times) > 1 else float("nan")
    after = quick_turn(log, times[-1]["ended"], max(ends[-1] for ends in log["ends"]))
    verdicts.say(
        after <= before * 1.3 + 5,
        "speed",
        f"a turn took {before:.0f} us before anybody attached, {between:.0f} us after the first and {after:.0f} us "
        "after the last (quickest twentieth)",
    )


def drive(options):
    verdicts = Verdicts(f"attach-{options.mode}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.json")
        process = start_loop(options, path)
        times = []
        try:
            for number in range(options.times):
                report = os.path.join(folder, f"report-{number}.json")
                times.append(dict(attach(options, process.pid, report), report=report))
                time.sleep(0.3)
            time.sleep(WARM_UP * 0.5)
        finally:
            process.terminate()
            try:
                status = process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
        if not os.path.exists(path):
            verdicts.say(False, "program", f"it left no log and ended with {status}")
            return 1
        with open(path, encoding="utf-8") as file:
            judge(options, verdicts, json.load(file), times, status)
    return 1 if verdicts.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("loop")
    one.add_argument("log")
    one.set_defaults(run=loop)
    one = commands.add_parser("drive")
    one.add_argument("--synccount", required=True)
    one.add_argument("--tracer", required=True)
    one.add_argument("--mode", choices=("dormant", "inject"), required=True)
    one.add_argument("--times", type=int, default=10)
    one.add_argument("--seconds", type=float, default=0.5)
    one.add_argument("--loop", help="another loop: a command that takes LOG as its last argument")
    one.set_defaults(run=drive)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
