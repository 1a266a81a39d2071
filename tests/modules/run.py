# SPDX-License-Identifier: Apache-2.0
"""run.py [CASE...]: small programs over the PyTorch in fake/ with the sitecustomize of --torch-modules in front. What
they tell the tracer is recorded by recorder.c in the tracer's place, one program under the tracer itself."""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import textwrap

here = os.path.dirname(os.path.abspath(__file__))
build = os.environ["SC_BUILD"]
shim = build + "/share/synccount/python"
recorder = build + "/tests/modules/recorder.so"
failures = []


def check(what, found, expected):
    if found != expected:
        failures.append(f"{what}:\n  found    {found!r}\n  expected {expected!r}")


HEAD = """
import gc, os, sys, threading
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Identity(), nn.Identity())
    def forward(self, x=None):
        return self.mlp(x)

class Model(nn.Module):
    def __init__(self, blocks=2):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(blocks))
    def forward(self, x=None):
        for layer in self.layers:
            x = layer(x)
        return x
"""


class Result:
    def __init__(self, process, log):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.calls = {}  # by thread, as text: "Model(layers.0(layers.0.mlp()))!forward-end:Model"
        for line in log.splitlines():
            thread, what, domain, *name = line.split(" ", 3)
            wanted = "synccount" if what == "mark" else "synccount.torch"
            if domain != wanted:
                failures.append(f"{what} in domain {domain}")
            text = {"push": "{}(", "pop": ")", "mark": "!{} "}[what].format(*name)
            self.calls[thread] = self.calls.get(thread, "") + text

    @property
    def ranges(self):
        """Of the first thread, without marks."""
        text = self.calls.get("1", "")
        return "".join(part.partition(" ")[2] if index else part for index, part in enumerate(text.split("!")))

    @property
    def marks(self):
        return [part.partition(" ")[0] for part in self.calls.get("1", "").split("!")[1:]]


def run(body, *, head=HEAD, command=None, path=(), options=(), status=0, **variables):
    """Runs Python code with the fake PyTorch and our folder in front of `path`."""
    with tempfile.TemporaryDirectory() as folder:
        log = folder + "/log"
        open(log, "w").close()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        environment.update(
            PYTHONPATH=os.pathsep.join([shim, *path, here + "/fake"]),
            SYNCCOUNT_TORCH_MODULES=recorder,
            RECORDER_FILE=log,
            PYTHONDONTWRITEBYTECODE="1",
        )
        environment.update(variables)
        code = head + textwrap.dedent(body)
        process = subprocess.run(
            command or [sys.executable, *options, "-c", code],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        name = inspect.stack()[1].function
        if status is not None:
            check(name + ": status, and what was said", (process.returncode, process.stderr), (status, ""))
        with open(log, encoding="utf-8") as file:
            return Result(process, file.read())


BLOCK = "layers.{0}(layers.{0}.mlp(layers.{0}.mlp.0()layers.{0}.mlp.1()))"
MODEL = "Model(" + BLOCK.format(0) + BLOCK.format(1) + ")"


def case_modules_have_the_names_of_the_model():
    result = run("model = Model(); model(); model()")
    check("names", result.ranges, MODEL * 2)
    check("ends", result.marks, ["forward-end:Model"] * 2)


def case_an_exception_closes_what_it_leaves():
    result = run("""
        class Fails(nn.Module):
            def forward(self, x=None): raise ValueError("deep")
        model = Model()
        model.layers[0].mlp.append(Fails())
        for _ in range(2):
            try: model()
            except ValueError as error: assert str(error) == "deep"
            else: raise SystemExit("it was swallowed")
        """)
    check(
        "ranges", result.ranges, "Model(layers.0(layers.0.mlp(layers.0.mlp.0()layers.0.mlp.1()layers.0.mlp.2())))" * 2
    )


def case_too_deep_a_recursion_is_the_programs_to_meet():
    result = run("""
        class Endless(nn.Module):
            def forward(self, x=None): return self(x)
        class Deep(nn.Module):
            def forward(self, x=None): return self(x - 1) if x else 0
        sys.setrecursionlimit(300)
        for limit in range(300, 312):  # wherever in our own calls it strikes
            sys.setrecursionlimit(limit)
            try: Endless()()
            except RecursionError: pass
            else: raise SystemExit("it was swallowed")
        Deep()(2)
        """)
    check("ranges that stay open", result.ranges.count("(") - result.ranges.count(")"), 0)
    check("the last", result.ranges.endswith("Deep(Deep(Deep()))"), True)


def case_a_generator_is_closed_when_it_is_returned():
    result = run("""
        class Yields(nn.Module):
            def forward(self): yield from (1, 2)
        assert list(Yields()()) == [1, 2]
        """)
    check("ranges", result.ranges, "Yields()")


def case_arguments_and_results_pass_through():
    run("""
        class Sum(nn.Module):
            def forward(self, a, *more, scale=1, **rest): return (a + sum(more)) * scale, rest
        assert Sum()(1, 2, 3, scale=2, self_=4) == (12, {"self_": 4})
        try: Sum()()
        except TypeError as error: assert "'a'" in str(error)
        """)


def case_a_module_added_later_gets_its_place():
    result = run("""
        model = Model(1); model()
        model.layers.append(Block()); model()
        """)
    check("ranges", result.ranges, "Model(" + BLOCK.format(0) + ")" + MODEL)


def case_a_module_that_nobody_holds_has_its_class():
    result = run("""
        class Makes(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Identity()
            def forward(self):
                nn.Sequential(nn.Identity(), self.inner)()
        model = Makes(); model(); model()
        """)
    check("ranges", result.ranges, "Makes(Sequential(0()inner()))" * 2)


def case_a_module_with_two_names_has_the_first():
    result = run("""
        model = Model(1)
        model.again = model.layers[0]
        model(); model.again()
        """)
    check("ranges", result.ranges, "Model(" + BLOCK.format(0) + ")" + BLOCK.format(0))


def case_a_part_called_alone_keeps_its_name_once_it_has_one():
    result = run("""
        model = Model()
        model.layers[0](); model(); model.layers[0]()
        nn.Sequential(model.layers[0])()
        """)
    check(
        "ranges",
        result.ranges,
        "Block(mlp(mlp.0()mlp.1()))" + MODEL + BLOCK.format(0) + "Sequential(" + BLOCK.format(0) + ")",
    )


def case_wrappers_are_no_part_of_a_name():
    result = run("nn.DataParallel(Model())()")
    check("parallel", result.ranges, "DataParallel(" + MODEL + ")")
    result = run("torch._dynamo.OptimizedModule(Model())()")
    check("compiled", result.ranges, MODEL)
    result = run("""
        model = Model()
        model.layers._modules["0"] = torch._dynamo.OptimizedModule(model.layers[0])
        model()
        """)
    check("compiled layer", result.ranges, MODEL)
    check("told", "compiled:layers.0" in result.marks, True)


def case_compiled_regions_are_told_after_a_reset_too():
    result = run("""
        torch._dynamo.reset()
        class Holds(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Model(1)
            def forward(self):
                torch._dynamo.callback.callback_handler.run_start_callbacks(None)
        Holds()()
        nn.Identity()()
        torch._dynamo.callback.callback_handler.run_start_callbacks(None)
        """)
    check(
        "marks", [mark for mark in result.marks if mark.startswith("compiled")], ["compiled:Holds", "compiled:(a"]
    )  # "(a function outside modules)"


def case_nothing_is_told_while_something_is_compiled():
    result = run("""
        torch.compiler._is_compiling_flag = True
        Model()(); torch.optim.SGD().step()
        """)
    check("calls", result.calls, {})


def case_dynamo_takes_the_wrapper_for_the_original_call():
    run("""
        assert torch._dynamo.seen_call is nn.Module.__call__
        code = nn.Module.__call__.__code__
        assert code.co_filename == nn.modules.module.__file__, code.co_filename
        assert nn.Module.__call__.__qualname__ == "Module._wrapped_call_impl"
        assert nn.Module.__call__.__module__ == "torch.nn.modules.module"
        import inspect, os
        # the file's name alone: a clone may well lie in a folder named synccount
        assert "synccount" not in os.path.basename(inspect.getsourcefile(nn.modules.module))
        assert nn.modules.module.__spec__.loader.__dict__.keys() == {"name", "path"}
        """)


def case_optimizers_are_told_apart():
    result = run("""
        one, two = torch.optim.SGD(), torch.optim.SGD()
        one.step(); two.step(); one.step()
        """)
    check("marks", result.marks, ["step-end:0", "step-end:1", "step-end:0"])


def case_an_optimizer_in_the_place_of_another_has_a_number_of_its_own():
    result = run("""
        gone = torch.optim.SGD(); place = id(gone); gone.step()
        del gone
        others = [torch.optim.SGD() for _ in range(2)]
        assert place in map(id, others)
        for other in others: other.step()
        """)
    check("marks", result.marks, ["step-end:0", "step-end:1", "step-end:2"])


def case_a_profiler_of_the_gpu_is_told():
    result = run("""
        from torch.autograd.profiler import ProfilerActivity, profile
        with profile([ProfilerActivity.CPU]) as one: pass
        with profile([ProfilerActivity.CPU, ProfilerActivity.CUDA]) as two: pass
        assert one.started == two.started == 1
        """)
    check("marks", result.marks, ["profiler:torch"])


def case_threads_have_ranges_of_their_own():
    result = run("""
        model = Model(); model()
        thread = threading.Thread(target=model.layers[1]) # as checkpointing calls it on autograd's thread
        thread.start(); thread.join()
        """)
    check("first", result.ranges, MODEL)
    check("second", result.calls["2"], BLOCK.format(1) + "!forward-end:layers.1 ")


def case_a_forked_child_goes_on():
    run("""
        model = Model(); model()
        child = os.fork()
        if child == 0:
            model(); os._exit(7)
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 7
        """)


def case_modules_are_forgotten_with_their_end():
    run("""
        import synccount_torch
        model = Model(); model()
        assert len(synccount_torch._known) == 10, len(synccount_torch._known)
        del model; gc.collect()
        for _ in range(100): nn.Identity()()
        assert len(synccount_torch._known) == 0, synccount_torch._known
        """)


def case_without_cuda_nothing_happens():
    result = run(
        """
        Model()()
        torch.optim.SGD().step()
        assert nn.Module.__call__ is nn.Module._wrapped_call_impl
        """,
        FAKE_TORCH_CUDA="",
    )
    check("calls", result.calls, {})


def case_without_the_option_nothing_happens():
    result = run(
        """
        Model()()
        assert "synccount_torch" not in sys.modules
        """,
        SYNCCOUNT_TORCH_MODULES="",
    )
    check("calls", result.calls, {})


def case_a_program_without_pytorch_imports_nothing():
    run(
        """
        import sys
        heavy = {"torch", "ctypes", "ast", "importlib.util", "threading"} & set(sys.modules)
        assert heavy <= {"importlib.util", "threading"}, heavy
        """,
        head="",
    )


def case_a_tracer_that_is_not_there_is_said_once():
    result = run(
        "Model()(); torch.optim.SGD().step(); print('done')", status=None, SYNCCOUNT_TORCH_MODULES="/nowhere.so"
    )
    check(
        "out",
        (result.out, result.err.count("\n"), "module ranges are not available" in result.err),
        ("done\n", 1, True),
    )


def case_pytorch_that_was_faster_is_wrapped_all_the_same():
    result = run(
        """
        sys.path.insert(0, os.environ["SHIM"])
        os.environ["SYNCCOUNT_TORCH_MODULES"] = os.environ["TOOL"]
        import synccount_torch
        synccount_torch.install()
        Model(1)()
        torch.optim.SGD().step()
        """,
        SYNCCOUNT_TORCH_MODULES="",
        SHIM=shim,
        TOOL=recorder,
    )
    check("ranges", result.ranges, "Model(" + BLOCK.format(0) + ")")
    check("marks", result.marks[-1], "step-end:0")


# ---- finding it, and finding the other one --------------------------------------------------------------------------


def folder_with(parent, name, **files):
    path = os.path.join(parent, name)
    os.makedirs(path)
    for file, text in files.items():
        with open(os.path.join(path, file + ".py"), "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))
    return path


def case_another_sitecustomize_is_run_in_its_place():
    with tempfile.TemporaryDirectory() as parent:
        other = folder_with(
            parent,
            "other",
            sitecustomize="import builtins; builtins.ran = __file__",
            usercustomize="import builtins; builtins.user = 1",
        )
        result = run(
            """
            import builtins, sitecustomize
            assert builtins.ran == sitecustomize.__file__ == os.environ["OTHER"] + "/sitecustomize.py"
            assert sys.modules["sitecustomize"].__spec__.name == "sitecustomize"
            assert not [entry for entry in sys.path if "synccount/python" in entry], sys.path
            assert os.environ["PYTHONPATH"].startswith(os.environ["SHIM"])
            Model(1)()
            """,
            path=[other],
            OTHER=other,
            SHIM=shim,
        )
        check("ranges", result.ranges, "Model(" + BLOCK.format(0) + ")")


def case_what_another_sitecustomize_raises_is_said_by_python():
    with tempfile.TemporaryDirectory() as parent:
        other = folder_with(parent, "other", sitecustomize="raise KeyError('theirs')")
        result = run("Model(1)()", path=[other], status=None)
        check(
            "said",
            (result.status, "KeyError: 'theirs'" in result.err, result.err.count("Error in sitecustomize")),
            (0, True, 1),
        )
        check("ranges", result.ranges, "Model(" + BLOCK.format(0) + ")")


def case_a_virtual_environment_has_its_own_sitecustomize():
    with tempfile.TemporaryDirectory() as parent:
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", parent + "/venv"], capture_output=True)
        if made.returncode != 0:
            print("SKIP a_virtual_environment: this Python cannot make one")
            return
        python = parent + "/venv/bin/python"
        packages = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        with open(packages + "/sitecustomize.py", "w", encoding="utf-8") as out:
            out.write("import sys; sys.ran_theirs = True\n")
        code = HEAD + "Model(1)(); assert sys.ran_theirs and sys.prefix != sys.base_prefix"
        result = run("", command=[python, "-c", code])
        check("ranges", result.ranges, "Model(" + BLOCK.format(0) + ")")


def case_scripts_modules_and_children_are_all_found():
    with tempfile.TemporaryDirectory() as parent:
        folder = folder_with(
            parent,
            "programs",
            program=HEAD + "Model(1)()\n",
            starts="import subprocess, sys, os\n"
            "subprocess.run([sys.executable, os.path.dirname(__file__) + '/program.py'], check=True)\n",
        )
        want = "Model(" + BLOCK.format(0) + ")"
        check("script", run("", command=[sys.executable, folder + "/program.py"]).ranges, want)
        check("-m", run("", command=[sys.executable, "-m", "program"], path=[folder]).ranges, want)
        check("child", run("", command=[sys.executable, folder + "/starts.py"]).ranges, want)
        multi = HEAD + (
            "import multiprocessing\n"
            "if __name__ == '__main__':\n"
            "    child = multiprocessing.get_context('spawn').Process(target=Model(1))\n"
            "    child.start(); child.join(); assert child.exitcode == 0\n"
        )
        with open(folder + "/spawns.py", "w", encoding="utf-8") as out:
            out.write(multi)
        check("spawn", run("", command=[sys.executable, folder + "/spawns.py"]).ranges, want)


def case_options_that_ignore_the_environment_leave_it_out():
    for option in ("-I", "-E", "-S"):
        result = run(
            """
            import os, sys
            sys.path.insert(0, os.environ["FAKE"])
            import torch
            torch.nn.Identity()()
            """,
            head="",
            options=[option],
            FAKE=here + "/fake",
        )
        check(option, result.calls, {})


# ---- under the tracer ------------------------------------------------------------------------------------------------

PROGRAM = HEAD + """
import ctypes
cudart = ctypes.CDLL(os.environ["CUDART"])

class Waits(nn.Module):
    def __init__(self, times):
        super().__init__()
        self.times = times
    def forward(self, x=None):
        for _ in range(self.times): assert cudart.cudaDeviceSynchronize() == 0

class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Waits(2), Waits(3)])
    def forward(self):
        for layer in self.layers: layer()

def backward(model):
    ctypes.CDLL(None).prctl(15, b"pt_autograd_0", 0, 0, 0)
    assert cudart.cudaDeviceSynchronize() == 0
    model.layers[1]()

model, optimizer = Training(), torch.optim.SGD()
for step in range(5):
    model()
    thread = threading.Thread(target=backward, args=(model,))
    thread.start(); thread.join()
    if len(sys.argv) > 1: optimizer.step()
"""


def traced(folder, *arguments, options=("--torch-modules",), program=PROGRAM):
    environment = dict(
        os.environ,
        LD_LIBRARY_PATH=build + "/lib/simcuda",
        PYTHONPATH=here + "/fake",
        CUDART=os.environ["SC_CUDART"],
        PYTHONDONTWRITEBYTECODE="1",
    )
    report = folder + "/report.json"
    process = subprocess.run(
        [
            build + "/bin/synccount",
            "run",
            *options,
            "--format",
            "json",
            "-o",
            report,
            "--",
            sys.executable,
            "-c",
            program,
            *arguments,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    check("traced: status", (process.returncode, process.stderr), (0, ""))
    with open(report, encoding="utf-8") as file:
        document = json.load(file)
    (found,) = document["processes"]
    return found, document["warnings"]


def case_the_tracer_takes_ranges_steps_and_backward():
    with tempfile.TemporaryDirectory() as folder:
        process, warnings = traced(folder, "optimize")
        ranges = {
            r["path"]: (r["level"], r["occurrences"], r["syncs"]["total"], r["domain"]) for r in process["ranges"]
        }
        check(
            "ranges",
            ranges,
            {
                "Training": (None, 5, 25, "synccount.torch"),
                "Training/layers.0": ("layer", 5, 10, "synccount.torch"),
                "Training/layers.1": ("layer", 5, 15, "synccount.torch"),
                "backward": (None, 5, 20, "synccount.torch"),
                "backward/layers.1": ("layer", 5, 15, "synccount.torch"),
            },
        )
        steps = process["steps"]
        check("steps", steps, {"source": "optimizer", "count": 4, "warmup": 0, "min": 9, "median": 9, "max": 9})
        check("a step", sum(site["per_step"] for site in process["sites"]), 9)
        check("warnings", [w for w in warnings if "modules" in w or "SIMULATED" in w], [])
        names = {frame["file"] for site in process["sites"] for frame in site["python"]}
        check("our own frames", [name for name in names if "synccount_torch" in (name or "")], [])
    with tempfile.TemporaryDirectory() as folder:
        process, _ = traced(folder)
        check(
            "forward steps",
            {key: process["steps"][key] for key in ("source", "count", "min", "max")},
            {"source": "forward", "count": 4, "min": 9, "max": 9},
        )
    with tempfile.TemporaryDirectory() as folder:
        process, warnings = traced(folder, "optimize", options=())
        check("without the option", ({r["path"] for r in process["ranges"]}, process["steps"]), ({"backward"}, None))


def case_a_program_whose_modules_are_not_seen_is_told():
    program = "import ctypes, os; assert ctypes.CDLL(os.environ['CUDART']).cudaDeviceSynchronize() == 0"
    with tempfile.TemporaryDirectory() as folder:
        process, warnings = traced(folder, program=program)
        check(
            "told", (process["syncs"]["total"], sum("saw no call of a PyTorch module" in w for w in warnings)), (1, 1)
        )


def main():
    if sys.version_info < (3, 8):
        print("Python before 3.8 is left alone")
        return 77
    cases = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}
    for name in sys.argv[1:] or cases:
        before = len(failures)
        cases[name]()
        print(("failed " if len(failures) > before else "ok     ") + name)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
