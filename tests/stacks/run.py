# SPDX-License-Identifier: Apache-2.0
"""run.py python|native|unknown|many|hot: runs a program under the tracer on the simulated device, and compares the sites of
its report with what the program's own source says. Python of every version that is found: this one, pyenv's, and those that
SC_PYTHONS names, with colons between."""
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
build = os.environ["SC_BUILD"]
failures = []


def check(what, found, expected):
    if found != expected:
        failures.append(f"{what}: {found!r} instead of {expected!r}")


def trace(command, folder, **variables):
    """The one trace of a run, and its process in the report."""
    environment = dict(
        os.environ,
        LD_LIBRARY_PATH=build + "/lib/simcuda",
        LD_PRELOAD=build + "/lib/libsynccount.so",
        SYNCCOUNT_OUTPUT=folder,
        SYNCCOUNT_QUIET="1",
        **variables,
    )
    subprocess.run(command, env=environment, check=True, timeout=120, stdout=subprocess.DEVNULL)
    (path,) = glob.glob(folder + "/*.sctrace")
    report = subprocess.run(
        [build + "/bin/synccount", "report", "--format", "json", path], check=True, capture_output=True, timeout=60
    )
    document = json.loads(report.stdout)
    return path, dict(document["processes"][0], warnings=document["warnings"])


def tags(path):
    """(line, functions, count) of each tagged line."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = re.search(r"# @(\S+) (\d+)$", line)
            if found:
                yield number, found[1].split("|"), int(found[2])


def check_python(python, folder):
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], check=True,
                             capture_output=True, text=True).stdout.strip()
    victim = here + "/victim.py"
    path, process = trace([python, victim], folder)
    counts, functions = {}, {}
    without = 0
    for site in process["sites"]:
        if not site["python"]:
            without += site["count"]
            continue
        frame = site["python"][0]
        check(f"{version}: outermost function", site["python"][-1]["function"] in ("<module>", "Thread._bootstrap",
              "_bootstrap", "at_exit") or len(site["python"]) == 64, True)
        key = (os.path.basename(frame["file"]), frame["line"])
        counts[key] = counts.get(key, 0) + site["count"]
        functions.setdefault(key, set()).add(frame["function"].rsplit(".", 1)[-1])
    expected = {("made-up.py", line): 1 for line in range(1, 5)}
    for line, names, count in tags(victim):
        key = ("victim.py", line)
        expected[key] = count
        for name in functions.get(key, set()):
            check(f"{version}: function of line {line}", name in names, True)
    check(f"{version}: syncs by line", counts, expected)
    check(f"{version}: syncs without Python", without, 1)  # the one after the interpreter's end
    with open(path, "rb") as file:
        live = struct.unpack_from("<32Q", file.read(512), 256)  # struct sc_trace_live
    taken, spent, walks, of_walks, longest = live[7], live[8], live[9], live[16], live[17]
    check(f"{version}: stacks taken", taken, process["syncs"]["total"])
    # The worker's 10 would have taken 100 ms each, by the interval that it sets.
    check(f"{version}: no stack waits for the GIL ({spent / 1e6:.1f} ms in all)", spent < 500e6, True)
    check(f"{version}: stacks walked", 0 < walks < taken, True)
    check(f"{version}: time of the walked ({of_walks}), the longest of the others ({longest}), of all ({spent})",
          0 < of_walks and 0 < longest <= spent - of_walks, True)


def all_pythons():
    yield sys.executable
    for python in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
        if int(python.split("/3.")[1].split(".")[0]) >= 9 and os.path.realpath(python) != os.path.realpath(sys.executable):
            yield python
    yield from filter(None, os.environ.get("SC_PYTHONS", "").split(":"))


def sites_in(process, function):
    """The sites whose innermost native frame is in `function`."""
    for site in process["sites"]:
        if site["native"] and site["native"][0]["function"] == function:
            yield site


def check_native(variant, folder):
    plugins = [build + "/tests/stacks/plugin_%s.so" % letter for letter in "ab"]
    _, process = trace([f"{build}/tests/stacks/{variant}"] + plugins, folder)
    if not any(frame["file"] for site in process["sites"] for frame in site["native"]):
        return False  # built without libdw
    chains = {}
    for site in process["sites"]:
        names = [frame["function"] for frame in site["native"]]
        chains[tuple(names[:4])] = chains.get(tuple(names[:4]), 0) + site["count"]
        check(f"{variant}: no Python", site["python"], [])
    check(f"{variant}: outer > middle > inner", chains.get(("inner", "middle", "outer", "main")), 7)
    check(f"{variant}: recursion", chains.get(("inner", "deep", "deep", "deep")), 1)
    check(f"{variant}: plug-ins", sum(count for names, count in chains.items() if names[0] == "plugin_sync"), 10)
    files = {site["native"][0]["file"] for site in sites_in(process, "inner")}
    check(f"{variant}: source file", {os.path.basename(str(file)) for file in files}, {"native.c"})
    # Each plug-in is a file of its own, wherever it was loaded.
    sites = list(sites_in(process, "plugin_sync"))
    check(f"{variant}: a site for each plug-in", sorted(site["count"] for site in sites), [5, 5])
    return True


def check_options(folder):
    program = [f"{build}/tests/stacks/stacks_native"] + [build + "/tests/stacks/plugin_%s.so" % x for x in "ab"]
    for value in ("none", "python"):
        os.mkdir(f"{folder}/{value}")
        _, process = trace(program, f"{folder}/{value}", SYNCCOUNT_STACKS=value)
        check(f"{value}: stacks", process["stacks"]["taken"], 0)
        check(f"{value}: sites without stacks", [(s["count"], s["native"]) for s in process["sites"]], [(18, [])])


def check_many(folder):
    """Threads that find and define the same stacks at the same time, while files come and go below others."""
    threads, paths, calls = 8, 256, 20
    plugins = [build + "/tests/stacks/plugin_%s.so" % letter for letter in "ab"]
    program = [f"{build}/tests/stacks/stacks_many", str(threads), str(paths), str(calls), "1"]
    _, process = trace(program + plugins, folder)
    total, of_plugins = threads * paths * calls, 2 * paths // 8
    check("many: syncs", process["syncs"]["total"], total + of_plugins)
    check("many: stacks taken", process["stacks"]["taken"], total + of_plugins)
    check("many: syncs of sites", sum(site["count"] for site in process["sites"]), total + of_plugins)
    # On a busy machine some walks take longer than they may: those stacks are cut, or missing. The others are of PATHS
    # places, and none of them has what belongs to another.
    whole = [site["count"] for site in process["sites"] if "work" in [frame["function"] for frame in site["native"]]]
    turns = {tuple(frame["function"] for frame in site["native"]) for site in process["sites"]}
    if not any("turn_left" in names for names in turns):
        return  # built without libdw: no names
    plugins_called = sum(site["count"] for site in process["sites"]
                         if site["native"] and site["native"][0]["function"] == "plugin_sync")
    if not process["stacks"]["missing"]:
        check("many: whole stacks of plug-ins and paths", len(whole) >= paths, True)
    check("many: syncs of one path", max(whole, default=0) <= threads * calls, True)
    check("many: syncs of the plug-ins", plugins_called <= of_plugins, True)
    if not process["stacks"]["missing"] and sum(whole) == total + of_plugins:
        check("many: a site for each path", sorted(whole)[-paths:], [threads * calls] * paths)


def check_hot(folder):
    """Stacks that come again and again in turn are walked once each, be they many (Python), or of one depth (native)."""
    stacks, rounds = 24, 100
    program = folder + "/hot.py"
    with open(program, "w", encoding="utf-8") as file:
        file.write("import ctypes, os\nsync = ctypes.CDLL(os.environ['SC_CUDART']).cudaDeviceSynchronize\n")
        file.writelines(f"def f{i}():\n    sync()\n" for i in range(stacks))
        file.write(f"for _ in range({rounds}):\n")
        file.writelines(f"    f{i}()\n" for i in range(stacks))
    native = [f"{build}/tests/stacks/stacks_many", "1", "6", "1", "400"]
    for name, command, count in (("python", [sys.executable, program], stacks), ("native", native, 6)):
        os.mkdir(f"{folder}/{name}")
        _, process = trace(command, f"{folder}/{name}")
        taken, walked = process["stacks"]["taken"], process["stacks"]["walked"]
        check(f"hot {name}: stacks taken", taken, 2400)
        # The first Python one is taken before its frames can be read.
        check(f"hot {name}: {walked} walks", count <= walked <= count + 8, True)


def check_unknown(folder):
    """Interpreters that are not known, and some that are not what they say: counts, no Python lines, and a word why."""
    cases = [("3.8.20", 0, "3.8.20"), ("3.16.0", 0, "3.16.0"), ("3.13.2", 1, "3.13.2 (free-threaded)"),
             ("3.14.1", 1, "3.14.1 (free-threaded)"), ("3.13.0", 0, "3.13.0"), ("3.14.0", 0, "3.14.0"),
             ("3.15.0", 0, "3.15.0"), ("3.12.1", 0, "3.12.1"), ("3.11.4", 0, "3.11.4")]
    for number, (version, free_threaded, said) in enumerate(cases):
        os.mkdir(f"{folder}/{number}")
        _, process = trace([build + "/tests/stacks/stacks_unknown", version, str(free_threaded)], f"{folder}/{number}")
        check(f"{said}: syncs", process["syncs"]["total"], 3)
        check(f"{said}: Python lines", [site["python"] for site in process["sites"] if site["python"]], [])
        found = [w for w in process["warnings"] if f"Python {said} keeps its frames in a way that is not known here" in w]
        check(f"{said}: warnings", len(found), 1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "python":
            for number, python in enumerate(all_pythons()):
                os.mkdir(f"{folder}/{number}")
                check_python(python, f"{folder}/{number}")
        elif sys.argv[1] == "many":
            check_many(folder)
        elif sys.argv[1] == "hot":
            check_hot(folder)
        elif sys.argv[1] == "unknown":
            check_unknown(folder)
        else:
            for variant in ("stacks_native", "stacks_native_frameless"):
                os.mkdir(f"{folder}/{variant}")
                if not check_native(variant, f"{folder}/{variant}"):
                    return 77
            check_options(folder)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


sys.exit(main())
