#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fused NVFP4 layer against sorted dispatch in bf16 and torch._grouped_mm in bf16, in one run on a GPU: time, share of the
roofline, TFLOP/s, GB/s, and whether the aims are met.

    compare.py [--shapes LIST] [--tokens LIST] [--rounds N] [--seconds N] [--act-quant w4a16|w4a4] [--seed N]
               [--bench PATH] [--rival COMMAND|none] [--json FILE] [--check]

One process for ours (bench_fused), one for the rival (rival.py), which take turns: a round is some forwards of one of them,
the order of fused plain, fused graph, sorted plain, rival plain and rival graph changes from round to round, and times are
medians over rounds. Both use the experts of one drawn routing. --seconds: points that do not fit are told as not measured.
--check: no times and no GPU: sets up each point, on the simulated device of the build and the CPU, and prints bytes and
operations; of a small shape where none is named, since the CPU takes minutes for a large one.

Exit status: 0 measured and every aim met, 1 an aim missed, 2 usage, 3 something could not be measured.
"""
import argparse
import importlib.util
import json
import os
import select
import shlex
import site
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHAPES = "mixtral-8x7b,qwen3-30b-a3b,gpt-oss-120b"
TOKENS = "1,16,64,512,4096"
CHECK_SHAPES, CHECK_TOKENS = "minimind-3-moe", "1,16"
MODES = [("fused", "plain"), ("fused", "graph"), ("sorted", "plain"), ("rival", "plain"), ("rival", "graph")]
ROUND_US = 8000.0  # a round is about this long, so that the events' own cost does not count
MOST_FORWARDS = 400
FEWEST_ROUNDS = 5
ANSWER_SECONDS = 120
AIM_FROM_US = 40.0  # of roofline time; below it launches rule
DECODE_TOKENS, DECODE_SHARE, DECODE_RATIO = 64, 0.55, 2.0  # at most so many tokens
PREFILL_TOKENS, PREFILL_SHARE, PREFILL_RATIO = 4096, 0.45, 0.7  # at least so many
RATIO_ONLY = {"gpt-oss-120b"}  # at PREFILL_TOKENS: about 128 tokens an expert, so a third of a tile is padding


class NotMeasured(Exception):
    pass


# ---- the two processes -----------------------------------------------------------------------------------------------


class Server:
    """A program that answers a line by a line of JSON."""

    def __init__(self, name, command, environment=None):
        self.name, self.errors = name, tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            env=environment)
        except FileNotFoundError as why:
            raise NotMeasured(f"{name} did not start: there is no {command[0]}; build it (make), or name another") from why
        except OSError as why:
            raise NotMeasured(f"{name} did not start: {why}") from why
        self.rest = b""

    def ask(self, request, seconds=ANSWER_SECONDS):
        try:
            self.process.stdin.write(request.encode() + b"\n")
            self.process.stdin.flush()
        except OSError as why:
            raise NotMeasured(self.ended()) from why
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.process.kill()
                raise NotMeasured(f'{self.name} gave no answer to "{request[:60]}" within {seconds} s')
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                raise NotMeasured(self.ended())
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError as why:
            raise NotMeasured(f"{self.name} answered no JSON: {line[:80]!r}") from why
        if not answer.get("ok"):
            raise NotMeasured(f"{self.name}: {answer.get('error', 'no reason given')}")
        return answer

    def ended(self):
        status = self.process.wait()
        self.errors.seek(0)
        lines = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        return f"{self.name} ended with status {status}: {lines[-1] if lines else 'no message'}"

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write(b"quit\n")
                self.process.stdin.close()
                self.process.wait(timeout=20)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        self.errors.close()


def library_path(simulated=None):
    """Where toolkits and Python wheels keep the CUDA libraries, after the simulated ones, if any, and what the user set."""
    torch = importlib.util.find_spec("torch")
    roots = {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}
    if torch and torch.origin:
        roots.add(os.path.dirname(os.path.dirname(torch.origin)))
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    folders = [cuda + "/lib64", cuda + "/targets/x86_64-linux/lib"]
    for root in sorted(roots):
        parent = os.path.join(root, "nvidia")
        if os.path.isdir(parent):
            folders += [os.path.join(parent, name, "lib") for name in sorted(os.listdir(parent))]
    found = [f for f in folders if any(os.path.exists(f"{f}/{so}") for so in ("libcudart.so.13", "libcublas.so.13"))]
    return ":".join([path for path in [simulated, os.environ.get("LD_LIBRARY_PATH")] if path] + found)


def built():
    """bench_fused where a build leaves it; the one for carrying to another host first, as tests/gpu/run."""
    paths = [os.path.join(ROOT, build, "bench", "bench_fused") for build in ("build-portable", "build")]
    return shlex.quote(next((path for path in paths if os.access(path, os.X_OK)), paths[-1]))


def start_ours(options):
    command = shlex.split(options.bench) + ["--act-quant", options.act_quant, "--seed", str(options.seed)]
    simulated = os.path.join(os.path.dirname(command[0]), os.pardir, "lib", "simcuda") if options.check else None
    return Server("bench_fused", command + ["--check"] * options.check,
                  dict(os.environ, LD_LIBRARY_PATH=library_path(simulated)))


def start_rival(options):
    return Server("rival", shlex.split(options.rival) + ["--seed", str(options.seed)] + ["--check"] * options.check)


# ---- measuring -------------------------------------------------------------------------------------------------------


class Point:
    def __init__(self, shape, tokens):
        self.shape, self.tokens = shape, tokens
        self.setup, self.times, self.forwards, self.why = None, {}, {}, {}

    def measure(self, run):
        routing = os.path.join(run.folder, "routing")
        config = self.shape if os.sep in self.shape else os.path.join(ROOT, "configs", self.shape + ".yaml")
        self.setup = run.ours.ask(f"setup {config} {self.tokens} {routing}")
        modes = [mode for mode in MODES if mode[0] != "rival"]
        try:
            run.find_rival().ask("setup " + json.dumps(dict(self.setup, routing=routing)))
            modes = MODES
        except NotMeasured as why:
            self.lose_rival(str(why))
        self.rounds(run, modes)

    def lose_rival(self, why):
        for mode in MODES:
            if mode[0] == "rival":
                self.times.pop(mode, None)
                self.why[mode] = why

    def time(self, run, mode, count):
        server = run.rival if mode[0] == "rival" else run.ours
        return server.ask(f"round {mode[0]} {mode[1]} {count}")["us"]

    def rounds(self, run, modes):
        """The rival may fail in any round: the others go on without it."""
        modes, slots = list(modes), self.setup["slots"]
        for i in range(-1, 0 if run.check else run.rounds):  # round -1 tells how many forwards fill one
            if i >= FEWEST_ROUNDS and time.monotonic() > run.point_end:
                break
            for j in range(len(modes)):
                mode = modes[(i + j) % len(modes)] if i >= 0 else modes[j]
                if mode in self.why:
                    continue
                try:
                    us = self.time(run, mode, self.forwards.get(mode, slots))
                except NotMeasured as why:
                    if mode[0] != "rival":
                        raise
                    self.lose_rival(str(why))
                    continue
                if i >= 0:
                    self.times.setdefault(mode, []).append(us)
                elif us is not None:
                    self.forwards[mode] = slots * max(1, min(round(ROUND_US / us / slots), MOST_FORWARDS // slots))


class Run:
    def __init__(self, options, folder):
        self.options, self.check, self.rounds, self.folder = options, options.check, options.rounds, folder
        self.end = time.monotonic() + options.seconds
        self.points = [Point(s, m) for s in options.shapes for m in options.tokens]
        self.ceilings, self.point_end, self.rival = [], 0.0, None
        self.ours = start_ours(options)
        try:
            self.device = self.ours.ask("device")
        except NotMeasured:
            self.ours.close()
            raise

    def find_rival(self):
        """A new one where there is none, or where the last one ended."""
        if self.options.rival == "none":
            raise NotMeasured("left out")
        if self.rival is None or self.rival.process.poll() is not None:
            if self.rival:
                self.rival.close()
                self.rival = None
            self.rival = start_rival(self.options)
            self.device["rival"] = self.rival.ask("versions")
        return self.rival

    def measure(self):
        for i, point in enumerate(self.points):
            left = self.end - time.monotonic()
            if left <= 0:
                point.why["all"] = "no time was left"
                continue
            self.point_end = time.monotonic() + left / (len(self.points) - i)
            print(f"{point.shape}, {point.tokens} tokens, {left:.0f} s left", file=sys.stderr)
            try:
                if self.ours.process.poll() is not None:
                    self.ours.close()
                    self.ours = start_ours(self.options)
                if i == 0 or self.points[i - 1].shape != point.shape:
                    self.ceilings.append(self.ours.ask("ceilings"))
                point.measure(self)
            except NotMeasured as why:
                point.why["all"] = str(why)
                point.times = {}

    def close(self):
        self.ours.close()
        if self.rival:
            self.rival.close()


# ---- judging ---------------------------------------------------------------------------------------------------------


def quantile(values, q):
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def spread(values):
    return {"p10_us": quantile(values, 0.1), "p50_us": quantile(values, 0.5), "p90_us": quantile(values, 0.9),
            "rounds": len(values)}


def middle(ceilings, key):
    values = [c[key] for c in ceilings if c.get(key) is not None]
    return statistics.median(values) if values else None


def aims_of(name, tokens, roofline_us):
    """(what, kind, least) of each aim for such a point, as docs/fused-nvfp4.md has them."""
    if roofline_us < AIM_FROM_US:
        return []
    if tokens <= DECODE_TOKENS:
        return [("copy bandwidth", "bandwidth_share", DECODE_SHARE), ("grouped_mm", "rival_ratio", DECODE_RATIO)]
    if tokens >= PREFILL_TOKENS:
        share = [] if name in RATIO_ONLY else [("bf16 matmul", "matmul_share", PREFILL_SHARE)]
        return share + [("grouped_mm", "rival_ratio", PREFILL_RATIO)]
    return []


def judge(point, ceilings):
    """One row: everything that follows from the answers."""
    row = {"shape": point.shape, "tokens": point.tokens}
    if point.setup is None or "all" in point.why:
        return dict(row, not_measured=point.why.get("all", "not set up"))
    setup = point.setup
    hit = statistics.mean(setup["hit"])
    moved = hit * setup["expert_bytes"] + setup["activation_bytes"]
    row.update(shape=setup["shape"]["name"], hit=hit, bytes=moved, flops=setup["flops"], slots=setup["slots"],
               copies=setup["copies"], cached=setup["copies"] < setup["copies_wanted"], verified=setup["verified"])
    times = {mode: spread(values) for mode, values in point.times.items() if values}
    row["times"] = {f"{variant}_{mode}": times[variant, mode] for variant, mode in MODES if (variant, mode) in times}
    row["not_measured_why"] = {f"{variant}_{mode}": point.why[variant, mode] for variant, mode in MODES
                               if (variant, mode) in point.why}
    if None in ceilings.values():
        return row
    by_bytes, by_flops = moved / ceilings["copy_gbs"] / 1e3, setup["flops"] / ceilings["matmul_tflops"] / 1e6
    row["roofline_us"], row["bound"] = max((by_bytes, "bandwidth"), (by_flops, "matmul"))
    for mode in ("plain", "graph"):
        if ("fused", mode) not in times:
            continue
        us = times["fused", mode]["p50_us"]
        result = {"roofline_share": row["roofline_us"] / us, "bandwidth_share": by_bytes / us, "matmul_share": by_flops / us,
                  "tflops": setup["flops"] / us / 1e6, "gbs": moved / us / 1e3, "read_share": moved / us / 1e3 / ceilings["read_gbs"]}
        if ("rival", mode) in times:
            result["rival_ratio"] = times["rival", mode]["p50_us"] / us
        if ("sorted", "plain") in times:  # sorted dispatch waits for the host: there is no graph of it
            result["sorted_ratio"] = times["sorted", "plain"]["p50_us"] / us
        row[mode] = result
    row["aims"] = [{"against": what, "least": least, "value": [row.get(mode, {}).get(kind) for mode in ("plain", "graph")]}
                   for what, kind, least in aims_of(row["shape"], point.tokens, row["roofline_us"])]
    for aim in row["aims"]:  # met where it is met both launched and replayed
        aim["met"] = None if None in aim["value"] else all(value >= aim["least"] for value in aim["value"])
    return row


# ---- printing --------------------------------------------------------------------------------------------------------


def digits(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def time_cell(row, key):
    found = row.get("times", {}).get(key)
    return f"{found['p50_us']:.1f} ({found['p10_us']:.1f}-{found['p90_us']:.1f})" if found else "not measured"


def pair(row, key, form):
    values = [row.get(mode, {}).get(key) for mode in ("plain", "graph")]
    return " / ".join(form(value) if value is not None else "-" for value in values)


def percent(value):
    return f"{100 * value:.0f} %"


def times_more(value):
    return f"{value:.2f}x"


def aim_cell(row):
    if "aims" not in row:
        return "-"
    if not row["aims"]:
        return "none below 40 us" if row["roofline_us"] < AIM_FROM_US else "none"
    cells = []
    for aim in row["aims"]:
        form = times_more if aim["against"] == "grouped_mm" else percent
        verdict = {True: "met", False: "**missed**", None: "not measured"}[aim["met"]]
        cells.append(f"{form(aim['least'])} of {aim['against']}: {verdict}")
    return "; ".join(cells)


COLUMNS = [
    ("shape", lambda r: r["shape"]), ("tokens", lambda r: str(r["tokens"])), ("experts hit", lambda r: f"{r['hit']:.1f}"),
    ("MB", lambda r: f"{r['bytes'] / 1e6:.1f}"), ("GFLOP", lambda r: digits(r["flops"] / 1e9)),
    ("roofline us", lambda r: f"{r['roofline_us']:.1f} {r['bound']}" if "roofline_us" in r else "-"),
    ("fused us", lambda r: time_cell(r, "fused_plain")), ("fused graph us", lambda r: time_cell(r, "fused_graph")),
    ("of roofline", lambda r: pair(r, "roofline_share", percent)), ("TFLOP/s", lambda r: pair(r, "tflops", digits)),
    ("GB/s", lambda r: pair(r, "gbs", digits)), ("sorted bf16 us", lambda r: time_cell(r, "sorted_plain")),
    ("grouped_mm us", lambda r: time_cell(r, "rival_plain")), ("grouped_mm graph us", lambda r: time_cell(r, "rival_graph")),
    ("faster than sorted", lambda r: pair(r, "sorted_ratio", times_more)),
    ("than grouped_mm", lambda r: pair(r, "rival_ratio", times_more)), ("aims", aim_cell),
]


def table(report):
    device, ceilings = report["device"], report["ceilings"]
    rival = device.get("rival", {})
    print(f"{device['device']['name']}{', SIMULATED' if device['simulated'] else ''}; PyTorch {rival.get('torch', 'none')}; "
          f"{report['act_quant']}; seed {report['seed']}. ", end="")
    if None not in ceilings.values():
        print(f"Ceilings: copy {ceilings['copy_gbs']:.0f} GB/s (bytes read and written; the roofline's), read "
              f"{ceilings['read_gbs']:.0f} GB/s, cuBLAS bf16 8192^3 {ceilings['matmul_tflops']:.0f} TFLOP/s.")
    else:
        print("No times: bytes and operations alone.")
    print("\n| " + " | ".join(title for title, _ in COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for row in report["rows"]:
        if "not_measured" in row:
            cells = [row["shape"], str(row["tokens"]), "not measured"] + ["-"] * (len(COLUMNS) - 3)
        else:
            cells = [cell(row) for _, cell in COLUMNS]
        print("| " + " | ".join(cells) + " |")
    if None not in ceilings.values():
        print("\nTimes: medians over rounds (p10 to p90), of one forward with routing. Pairs: launched / replayed from a CUDA graph; an "
              "aim is met where both meet it.\nSorted dispatch waits for the host once, so no graph holds it; it has no biases.")
    for row in report["rows"]:
        place = f"{row['shape']}, {row['tokens']} tokens"
        if "not_measured" in row:
            print(f"\n{place}: not measured: {row['not_measured']}")
        for why in sorted(set(row.get("not_measured_why", {}).values())):
            print(f"\n{place}: grouped_mm not measured: {why}")
        if row.get("cached"):
            print(f"\n{place}: memory holds only {row['copies']} copies of the weights, so part of them may have come from the L2")


def verdict(report):
    rows = report["rows"]
    aims = [aim for row in rows for aim in row.get("aims", [])]
    if any("not_measured" in row or row["not_measured_why"] for row in rows) or any(aim["met"] is None for aim in aims):
        return 3
    return 1 if any(not aim["met"] for aim in aims) else 0


def words(text):
    found = [word for word in text.split(",") if word]
    if not found:
        raise argparse.ArgumentTypeError(f'"{text}" names nothing')
    return found


def shapes(text):
    spaced = [word for word in words(text) if word.split() != [word]]
    if spaced:  # bench_fused reads words
        raise argparse.ArgumentTypeError(f'"{spaced[0]}": bench_fused takes no path with spaces; link or copy it')
    return words(text)


def command(text):
    try:
        found = shlex.split(text)
    except ValueError as why:
        raise argparse.ArgumentTypeError(f"{text}: {why}") from why
    if not found:
        raise argparse.ArgumentTypeError("an empty command")
    return text


def writable(path):
    """Now rather than after the measurement."""
    if path != "-":
        new = not os.path.lexists(path)
        try:
            with open(path, "a", encoding="utf-8"):
                pass
            if new:
                os.unlink(path)
        except OSError as why:
            raise argparse.ArgumentTypeError(f"cannot write {path}: {why.strerror}") from why
    return path


def numbers(text):
    values = [int(word) for word in words(text) if word.isdecimal() and int(word) > 0]
    if not values or len(values) != len(words(text)):
        raise argparse.ArgumentTypeError(f'"{text}" is no list of numbers from 1, such as {TOKENS}')
    return values


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 1')
    return int(text)


def natural(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 0')
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=shapes, help=f"names in configs/, or paths ({SHAPES}; --check: {CHECK_SHAPES})")
    parser.add_argument("--tokens", type=numbers, help=f"({TOKENS}; --check: {CHECK_TOKENS})")
    parser.add_argument("--rounds", type=positive, default=15, help="of each point, at most (15)")
    parser.add_argument("--seconds", type=positive, default=280, help="for everything (280)")
    parser.add_argument("--act-quant", choices=("w4a16", "w4a4"), default="w4a16", help="activations of the fused layer (w4a16)")
    parser.add_argument("--seed", type=natural, default=0)
    parser.add_argument("--bench", type=command, default=built(), help="(%(default)s)")
    parser.add_argument("--rival", type=command, default=shlex.join([sys.executable, os.path.join(HERE, "rival.py")]))
    parser.add_argument("--json", metavar="FILE", type=writable, help="everything, for programs; - is standard output, instead of the table")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.shapes = options.shapes or words(CHECK_SHAPES if options.check else SHAPES)
    options.tokens = options.tokens or numbers(CHECK_TOKENS if options.check else TOKENS)
    return options


def write_json(report, path):
    if path == "-":
        json.dump(report, sys.stdout, indent=1)
        print()
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = Run(options, folder)
        except NotMeasured as why:
            print(f"compare.py: {why}", file=sys.stderr)
            return 3
        try:
            run.measure()
        finally:
            run.close()
    ceilings = {key: middle(run.ceilings, key) for key in ("copy_gbs", "read_gbs", "matmul_tflops")}
    report = {"schema": "synccount/bench-fused-nvfp4/1", "device": run.device, "act_quant": options.act_quant,
              "seed": options.seed, "ceilings": ceilings, "ceiling_samples": run.ceilings,
              "rows": [judge(point, ceilings) for point in run.points]}
    if options.json != "-":
        table(report)
    if options.json:
        try:
            write_json(report, options.json)
        except OSError as why:
            print(f"compare.py: cannot write {options.json}: {why.strerror}", file=sys.stderr)
            return 3
    return verdict(report)


if __name__ == "__main__":
    sys.exit(main())
