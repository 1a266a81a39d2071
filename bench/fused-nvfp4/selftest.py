#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py on hand-made answers of bench_fused and rival.py: what it computes, what it calls met, in which order it asks,
and that it says what was not measured."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Stands in for both programs: answers from a file, and keeps every request.
FAKE = '''
import json, os, sys, time
folder, name = sys.argv[1:3]
plan = json.load(open(folder + "/plan"))
tokens = 0
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    with open(folder + "/requests", "a") as log:
        log.write(f"{name} {line.strip()}\\n")
    answer = {"ok": True}
    if word == "quit":
        break
    if word == "setup":
        tokens = str(json.loads(rest)["tokens"] if name == "rival" else rest.split()[1])
        if tokens in plan.get("dies", []) and name == plan["who"]:
            sys.exit("the device was lost")
        if tokens in plan.get("refuses", []) and name == plan["who"]:
            answer = {"ok": False, "error": "out of memory"}
        elif name == "ours":
            answer.update(plan["setup"], tokens=int(tokens))
            answer["flops"] = plan["flops_a_token"] * int(tokens)
    elif word == "round":
        variant, mode, count = rest.split()
        time.sleep(plan.get("slow", 0))
        us = plan["us"][tokens][variant + " " + mode]
        series = plan.setdefault("played", {}).setdefault(tokens + rest, [])
        series.append(0)
        answer.update(forwards=int(count), us=us if isinstance(us, (int, float)) else us[len(series) % len(us)])
    elif word == "ceilings":
        answer.update(plan["ceilings"])
    elif word == "device":
        answer.update(simulated=False, device={"name": "fake device"})
    elif word == "versions":
        answer.update(torch="9.9", cuda="9", device="fake device")
    print(json.dumps(answer), flush=True)
'''
# 10 experts hit of 20 MB and 0.4 MB of activations: 200.4 MB at 4000 GB/s are 50.1 us. A token is 1 GFLOP: at 500 TFLOP/s
# 4096 tokens are 8192 us.
PLAN = {
    "setup": {"shape": {"name": "mixtral-8x7b", "hidden": 4096}, "slots": 4, "copies": 2, "copies_wanted": 2, "hit": [9, 11, 10, 10],
              "expert_bytes": 20_000_000, "activation_bytes": 400_000, "verified": {}},
    "flops_a_token": 1e9, "ceilings": {"copy_gbs": 4000.0, "read_gbs": 4400.0, "matmul_tflops": 500.0},
    "us": {"1": {"fused plain": 80.0, "fused graph": 70.0, "sorted plain": 400.0, "rival plain": 240.0, "rival graph": 175.0},
           "4096": {"fused plain": 16384.0, "fused graph": 16000.0, "sorted plain": 20000.0, "rival plain": 12000.0,
                    "rival graph": 11500.0}},
}
bad = []


def expect(what, found, wanted):
    same = abs(found - wanted) < 1e-6 * abs(wanted) if isinstance(wanted, float) and isinstance(found, (int, float)) else found == wanted
    if not same:
        bad.append(f"{what}: {found!r} instead of {wanted!r}")


def compare(plan, *options):
    """Status, the JSON report, the text, and the requests in order."""
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/plan", "w", encoding="utf-8") as file:
            json.dump(plan, file)
        with open(folder + "/fake.py", "w", encoding="utf-8") as file:
            file.write(FAKE)
        command = f"{sys.executable} {folder}/fake.py {folder}"
        done = subprocess.run([sys.executable, HERE + "/compare.py", "--bench", command + " ours", "--rival", command + " rival",
                               "--shapes", "mixtral-8x7b", "--tokens", "1,4096", "--json", folder + "/json", *options],
                              capture_output=True, text=True, timeout=100, check=False)
        if not os.path.exists(folder + "/json"):
            return done.returncode, None, done.stdout + done.stderr, []
        with open(folder + "/json", encoding="utf-8") as file:
            report = json.load(file)
        with open(folder + "/requests", encoding="utf-8") as file:
            return done.returncode, report, done.stdout + done.stderr, file.read().splitlines()


def changed(tokens=None, setup=None, **figures):
    plan = json.loads(json.dumps(PLAN))
    for key, value in figures.items():
        plan["us"][tokens][key.replace("_", " ")] = value
    plan["setup"].update(setup or {})
    return plan


def aims(row):
    return [(aim["against"], aim["least"], aim["met"]) for aim in row["aims"]]


def good_run():
    status, report, text, requests = compare(PLAN, "--rounds", "5")
    expect("status where every aim is met", status, 0)
    decode, prefill = report["rows"]
    expect("bytes", decode["bytes"], 200_400_000.0)
    expect("roofline", (decode["bound"], prefill["bound"]), ("bandwidth", "matmul"))
    expect("roofline of decode", decode["roofline_us"], 50.1)
    expect("roofline of prefill", prefill["roofline_us"], 8192.0)
    expect("share of decode", decode["plain"]["roofline_share"], 50.1 / 80)
    expect("share of decode, replayed", decode["graph"]["bandwidth_share"], 50.1 / 70)
    expect("share of prefill", prefill["plain"]["matmul_share"], 0.5)
    expect("rate", prefill["plain"]["tflops"], 250.0)
    expect("bandwidth", decode["plain"]["gbs"], 2505.0)
    expect("share of reading", decode["plain"]["read_share"], 2505.0 / 4400)
    expect("against grouped_mm", decode["plain"]["rival_ratio"], 3.0)
    expect("against grouped_mm, replayed", decode["graph"]["rival_ratio"], 2.5)
    expect("against sorted", decode["plain"]["sorted_ratio"], 5.0)
    expect("aims of decode", aims(decode), [("copy bandwidth", 0.55, True), ("grouped_mm", 2.0, True)])
    expect("aims of prefill", aims(prefill), [("bf16 matmul", 0.45, True), ("grouped_mm", 0.7, True)])
    row = next((line for line in text.splitlines() if line.startswith("| mixtral-8x7b | 1 |")), "")
    expect("row", [cell.strip() for cell in row.split("|")][3:12],
           ["10.0", "200.4", "1", "50.1 bandwidth", "80.0 (80.0-80.0)", "70.0 (70.0-70.0)", "63 % / 72 %", "12.5 / 14.3", "2505 / 2863"])
    order(requests)


def order(requests):
    """Turns: ours and the rival's in each round, each round beginning one further, counts of whole turns of the slots."""
    rounds = [tuple(line.split()[2:4]) for line in requests if line.split()[1] == "round"][5:30]
    modes = [("fused", "plain"), ("fused", "graph"), ("sorted", "plain"), ("rival", "plain"), ("rival", "graph")]
    expect("order of the rounds", rounds, [modes[(i + j) % 5] for i in range(5) for j in range(5)])
    counts = {int(line.split()[4]) for line in requests if line.split()[1] == "round"}
    expect("whole turns of the slots", all(count % 4 == 0 for count in counts), True)
    expect("a round fills some milliseconds", "ours round fused plain 100" in requests, True)
    setups = [line for line in requests if line.split()[1] == "setup"]
    expect("who is set up first", [line.split()[0] for line in setups], ["ours", "rival"] * 2)
    files = [(setups[i].split()[4], json.loads(setups[i + 1].partition("setup ")[2])["routing"]) for i in (0, 2)]
    expect("the rival reads the routing that ours wrote", all(wrote == read for wrote, read in files), True)


def aim(name, plan, tokens, wanted, status_wanted):
    status, report, text, _ = compare(plan, "--tokens", tokens)
    expect(f"{name}: aims", aims(report["rows"][0]), wanted)
    expect(f"{name}: status", status, status_wanted)
    expect(f"{name}: the table says so", "**missed**" in text, status_wanted == 1)


def aims_missed():
    aim("decode below 55 %", changed("1", fused_plain=92.0), "1", [("copy bandwidth", 0.55, False), ("grouped_mm", 2.0, True)], 1)
    aim("decode below 2x, replayed alone", changed("1", rival_graph=139.0), "1",
        [("copy bandwidth", 0.55, True), ("grouped_mm", 2.0, False)], 1)
    aim("prefill below 45 %", changed("4096", fused_graph=18300.0, rival_graph=13000.0), "4096",
        [("bf16 matmul", 0.45, False), ("grouped_mm", 0.7, True)], 1)
    aim("prefill below 0.7x", changed("4096", rival_plain=11400.0), "4096",
        [("bf16 matmul", 0.45, True), ("grouped_mm", 0.7, False)], 1)
    oss = {"shape": {"name": "gpt-oss-120b", "hidden": 2880}}
    aim("gpt-oss-120b has its ratio alone", changed("4096", setup=oss, fused_plain=18300.0, rival_plain=13000.0), "4096",
        [("grouped_mm", 0.7, True)], 0)
    aim("gpt-oss-120b at few tokens has both", changed("1", setup=oss), "1",
        [("copy bandwidth", 0.55, True), ("grouped_mm", 2.0, True)], 0)
    aim("below 40 us launches rule", changed("1", setup={"hit": [7, 7, 7, 7]}, fused_plain=900.0), "1", [], 0)
    middle = changed()
    middle["us"]["512"] = dict(middle["us"]["4096"])
    aim("512 tokens have none", middle, "512", [], 0)
    status, report, _, _ = compare(changed("1", fused_plain=[60.0, 80.0, 1000.0]), "--tokens", "1", "--rounds", "9")
    expect("medians, not means", report["rows"][0]["times"]["fused_plain"],
           {"p10_us": 60.0, "p50_us": 80.0, "p90_us": 1000.0, "rounds": 9})


def not_measured():
    status, report, text, _ = compare(dict(PLAN, who="rival", refuses=["1"]))
    decode, prefill = report["rows"]
    expect("rival refused: status", status, 3)
    expect("rival refused: aims", aims(decode), [("copy bandwidth", 0.55, True), ("grouped_mm", 2.0, None)])
    expect("rival refused: the reason", "1 tokens: grouped_mm not measured: rival: out of memory" in text, True)
    expect("rival refused: ours was measured", decode["times"]["fused_plain"]["p50_us"], 80.0)
    expect("rival refused: the next point has it", prefill["plain"]["rival_ratio"], 12000 / 16384)
    status, report, text, _ = compare(dict(PLAN, who="rival", dies=["1"]))
    expect("rival died: status", status, 3)
    expect("rival died: the reason", text.count("1 tokens: grouped_mm not measured: rival ended with status 1: the device was lost"), 1)
    expect("rival died: ours goes on", report["rows"][0]["times"]["fused_graph"]["p50_us"], 70.0)
    expect("rival died: a new one at the next point", report["rows"][1]["plain"]["rival_ratio"], 12000 / 16384)
    broken = changed()
    del broken["us"]["1"]["rival graph"]
    status, report, text, _ = compare(broken)
    expect("rival died in a round: status", status, 3)
    expect("rival died in a round: no time of it stays", sorted(report["rows"][0]["times"]), ["fused_graph", "fused_plain", "sorted_plain"])
    expect("rival died in a round: the next point", report["rows"][1]["graph"]["rival_ratio"], 11500 / 16000)
    status, report, text, _ = compare(dict(PLAN, who="ours", refuses=["1"]))
    expect("ours refused: status", status, 3)
    expect("ours refused: row", report["rows"][0], {"shape": "mixtral-8x7b", "tokens": 1, "not_measured": "bench_fused: out of memory"})
    expect("ours refused: the next point", report["rows"][1]["times"]["fused_plain"]["p50_us"], 16384.0)
    status, report, text, _ = compare(dict(PLAN, who="ours", dies=["4096"]), "--tokens", "1,4096,1")
    expect("ours died: status", status, 3)
    expect("ours died: the reason", "4096 tokens: not measured: bench_fused ended with status 1: the device was lost" in text, True)
    expect("ours died: what was measured stays", report["rows"][0]["plain"]["rival_ratio"], 3.0)
    expect("ours died: a new one at the next point", report["rows"][2]["plain"]["rival_ratio"], 3.0)
    status, report, text, _ = compare(dict(PLAN, slow=0.05), "--seconds", "1", "--rounds", "1000", "--tokens", "1,1,1,1,1")
    expect("no time: status", status, 3)
    expect("no time: the first has the fewest rounds", report["rows"][0]["times"]["fused_plain"]["rounds"], 5)
    expect("no time: the last", report["rows"][4], {"shape": "mixtral-8x7b", "tokens": 1, "not_measured": "no time was left"})
    status, report, text, _ = compare(PLAN, "--rival", "none")
    expect("no rival: status", (status, "grouped_mm not measured: left out" in text), (3, True))
    status, report, text, _ = compare(PLAN, "--bench", "/nonexistent")
    expect("no bench: status", (status, "compare.py: bench_fused did not start" in text), (3, True))
    status, report, text, _ = compare(changed(setup={"copies_wanted": 3}))
    expect("too few copies are told", "memory holds only 2 copies of the weights" in text, True)
    for options in (["--tokens", "1,x"], ["--tokens", "0"], ["--rounds", "0"], ["--seed", "-1"], ["--act-quant", "w8"],
                    ["--tokens", ","], ["--shapes", ",,"], ["--shapes", "a b"], ["--rival", "'x"], ["--bench", ""],
                    ["--json", "/nonexistent/x"]):
        expect(f"{options}: status", compare(PLAN, *options)[0], 2)


def main():
    good_run()
    aims_missed()
    not_measured()
    print("\n".join(bad) or "compare.py computes and judges what its inputs say")
    return 1 if bad else 0


sys.exit(main())
