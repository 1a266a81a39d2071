#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_fused on the simulated device: its protocol, the routing it writes, and its bytes and operations against a count of
the tensors of a layer. No times.

    check.py BENCH_FUSED FOLDER_OF_THE_SIMULATED_LIBRARIES
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

CONFIG = """# SPDX-License-Identifier: Apache-2.0
model:
  name: {name}
  hidden: {hidden}
  intermediate: {intermediate}
  experts: {experts}
  top_k: {top_k}
  layers: 1
  moe_layers: 1
  dtype: {dtype}
  activation: {activation}
{more}  biases: {biases}
  router:
    scoring: {scoring}
    renormalize: true
"""
PLAIN = dict(name="plain", hidden=64, intermediate=96, experts=6, top_k=2, dtype="bf16", activation="silu",
             more="  w13_layout: packed\n", biases="false", scoring="softmax")
SHAPES = [
    PLAIN,
    dict(PLAIN, name="biased", hidden=48, intermediate=80, experts=40, top_k=4, activation="swigluoai", biases="true",
         more="  alpha: 1.702\n  beta: 1\n  limit: 7\n  w13_layout: interleaved\n"),
    dict(PLAIN, name="ungated", hidden=32, intermediate=144, experts=9, top_k=1, activation="relu2_no_mul", more=""),
]
REFUSED = [dict(PLAIN, name="sigmoid", scoring="sigmoid"), dict(PLAIN, name="wide", hidden=72),
           dict(PLAIN, name="fp32", dtype="fp32")]
TOKENS = (1, 16, 200)
bad = []


def expect(what, found, wanted):
    if found != wanted:
        bad.append(f"{what}: {found!r} instead of {wanted!r}")


def run(bench, libraries, lines, *options):
    """Status, the answers, and what it said on stderr."""
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
    done = subprocess.run([bench, *options], input="".join(line + "\n" for line in lines), capture_output=True, text=True,
                          timeout=250, env=environment, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def tensors(shape):
    """(elements, bytes of one in NVFP4) of everything that one expert stores."""
    projections = 1 if shape["activation"].endswith("_no_mul") else 2
    matrices = [(shape["intermediate"], shape["hidden"])] * projections + [(shape["hidden"], shape["intermediate"])]
    stored = []
    for rows, columns in matrices:
        stored += [(rows * columns, 0.5), (rows * (columns // 16), 1)]  # codes; one E4M3 scale for 16 of a row
        if shape["biases"] == "true":
            stored.append((rows, 4))
    return matrices, stored + [(2, 4)]  # an fp32 scale for each of the layer's two stacked matrices


def check_setup(shape, tokens, answer, path):
    name = f"{shape['name']}, {tokens} tokens"
    if not answer.get("ok"):
        bad.append(f"{name}: {answer}")
        return
    matrices, stored = tensors(shape)
    parameters = sum(rows * columns for rows, columns in matrices)
    expect(f"{name}: parameters", answer["expert_parameters"], parameters)
    expect(f"{name}: bytes of an expert", answer["expert_bytes"], sum(count * size for count, size in stored))
    expect(f"{name}: bytes of activations", answer["activation_bytes"], 2 * (tokens * shape["hidden"] * 2))
    expect(f"{name}: operations", answer["flops"], sum(2 for _ in range(shape["top_k"])) * tokens * parameters)
    with open(path, "rb") as file:
        data = file.read()
    slots, choices = answer["slots"], tokens * shape["top_k"]
    expect(f"{name}: bytes of routing", len(data), slots * choices * 4)
    chosen = struct.unpack(f"<{slots * choices}i", data)
    hit = [len(set(chosen[i * choices:(i + 1) * choices])) for i in range(slots)]
    expect(f"{name}: experts hit", answer["hit"], hit)
    expect(f"{name}: choices in range", all(0 <= c < shape["experts"] for c in chosen), True)
    expect(f"{name}: a token chooses an expert once",
           all(len(set(chosen[i:i + shape["top_k"]])) == shape["top_k"] for i in range(0, len(chosen), shape["top_k"])), True)
    expect(f"{name}: slots are whole turns of the copies", slots % answer["copies"], 0)
    expect(f"{name}: slots differ", tokens == 1 or len({chosen[i * choices:(i + 1) * choices] for i in range(slots)}) > 1, True)
    expect(f"{name}: simulated", answer["simulated"], True)
    if answer["copies"] != 16:  # the most there are
        expect(f"{name}: copies beyond twice the L2", answer["copies"] * max(hit) * answer["expert_bytes"] >= 2 * answer["l2_bytes"], True)
    expect(f"{name}: fused verified", answer["verified"]["fused"]["cosine"] > 0.999, True)
    expect(f"{name}: sorted verified once", "sorted" in answer["verified"], tokens == TOKENS[0])


def check_shape(bench, libraries, folder, shape):
    config = os.path.join(folder, shape["name"] + ".yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(**shape))
    paths = [os.path.join(folder, f"{shape['name']}-{tokens}") for tokens in TOKENS]
    lines = []
    for tokens, path in zip(TOKENS, paths):
        lines += [f"setup {config} {tokens} {path}", "round fused plain 16", "round fused graph 32", "round sorted plain 16"]
    status, answers, errors = run(bench, libraries, lines, "--check")
    expect(f"{shape['name']}: status", status, 0)
    if len(answers) != len(lines):
        bad.append(f"{shape['name']}: {len(answers)} answers to {len(lines)} requests: {errors}")
        return
    for i, (tokens, path) in enumerate(zip(TOKENS, paths)):
        check_setup(shape, tokens, answers[4 * i], path)
        for answer, count in zip(answers[4 * i + 1:4 * i + 4], (16, 32, 16)):
            expect(f"{shape['name']}, {tokens} tokens: round", answer, {"ok": True, "forwards": count, "us": None})
    with open(paths[1], "rb") as file:
        first = file.read()
    run(bench, libraries, [f"setup {config} {TOKENS[1]} {paths[1]}"], "--check", "--act-quant", "w4a4")
    with open(paths[1], "rb") as file:
        expect(f"{shape['name']}: a seed draws one routing", file.read() == first, True)
    run(bench, libraries, [f"setup {config} {TOKENS[1]} {paths[1]}"], "--check", "--seed", "7")
    with open(paths[1], "rb") as file:
        expect(f"{shape['name']}: another seed draws another", file.read() == first, False)


def check_refusals(bench, libraries, folder):
    config = os.path.join(folder, "plain.yaml")
    cases = [
        ("round fused plain 16", "nothing is set up"),
        ("setup", "is no request"),
        ("nonsense 1 2 3", "is no request"),
        (f"setup {config} 0 {folder}/r", '"0" is not a number'),
        (f"setup {config} -3 {folder}/r", '"-3" is not a number'),
        (f"setup {folder}/absent.yaml 1 {folder}/r", "absent.yaml"),
        (f"setup {config} 1 {folder}/no/such/folder", "no/such/folder"),
        (f"setup {config} 1 {folder}/r", None),
        ("round fused plain 3", "whole turns"),
        ("round fused plain 0", '"0" is not a number'),
        ("round fused slowly 16", "plain or graph"),
        ("round masked plain 16", "fused or sorted"),
        ("round sorted graph 16", "no graph can hold it"),
        ("ceilings", None),
        ("device", None),
    ]
    for shape in REFUSED:
        path = os.path.join(folder, shape["name"] + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(**shape))
    reasons = {"sigmoid": "no plain softmax", "wide": "multiples of 16", "fp32": "bf16"}
    cases += [(f"setup {folder}/{shape['name']}.yaml 4 {folder}/r", reasons[shape["name"]]) for shape in REFUSED]
    cases += [("round fused plain 16", "nothing is set up")]
    status, answers, _ = run(bench, libraries, [line for line, _ in cases] + ["quit", "device"], "--check")
    expect("refusals: status", status, 0)
    expect("refusals: answers", len(answers), len(cases))
    for (line, reason), answer in zip(cases, answers):
        if reason is None:
            expect(f"{line}: accepted", answer.get("ok"), True)
        elif answer.get("ok") or reason not in answer.get("error", ""):
            bad.append(f"{line}: {answer} instead of an error with \"{reason}\"")
    expect("ceilings of --check", answers[13], {"ok": True, "copy_gbs": None, "read_gbs": None, "matmul_tflops": None})
    status, answers, errors = run(bench, libraries, ["device"])
    expect("simulated device without --check", (status, answers, "--check" in errors), (3, [], True))
    for options in (["--act-quant", "w8"], ["--seed", "x"], ["surplus"], ["--unknown"]):
        status, answers, errors = run(bench, libraries, [], *options)
        expect(f"{options}: status", (status, "usage: bench_fused" in errors), (2, True))


def main():
    bench, libraries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            check_shape(bench, libraries, folder, shape)
        check_refusals(bench, libraries, folder)
    print("\n".join(bad) or "bench_fused sets up and counts what it should")
    return 1 if bad else 0


sys.exit(main())
