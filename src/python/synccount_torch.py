# SPDX-License-Identifier: Apache-2.0
"""Tells the tracer which nn.Module runs: one NVTX range a call, named as in the model, and a mark at the end of each
optimizer step. Loaded by sitecustomize.py under `synccount run --torch-modules`.

Nothing is imported until the program imports PyTorch. Ranges are of domain "synccount.torch", so that they cannot be
mixed up with the program's own; marks are of domain "synccount": step-end:<n> (optimizer n of this process),
forward-end:<module> (an outermost module returned), compiled:<module>, profiler:torch.

Only the call of a module is wrapped, by replacing Module.__call__ before torch._dynamo is imported: no hook is
registered, since hooks change what torch.compile traces and make it warn. Dynamo takes the function that it finds at
its own import for the original one and goes from there straight to `forward`; where it does look inside,
is_compiling() sends it on. The wrapper carries the file and line of the function that it replaces, so that tracebacks,
dynamo's list of files to skip and the tracer's Python frames all see PyTorch there.
"""

import os
import sys

_DOMAIN, _MARKS = b"synccount.torch", b"synccount"
# Attributes that wrappers keep the wrapped module in: no part of a name.
_TRANSPARENT = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
_PARALLEL = frozenset(("DataParallel", "DistributedDataParallel"))
_SCRIPTED = frozenset(("RecursiveScriptModule", "ScriptModule", "TopLevelTracedModule"))
_COMPILED = _SCRIPTED | {"OptimizedModule"}
_CONTAINERS = frozenset(("ModuleList", "ModuleDict"))  # never called


# ---- after an import ---------------------------------------------------------------------------------------------


class _Finder:
    """Runs a function after a module of PyTorch was executed; otherwise the import is as without us."""

    def __init__(self, actions):
        self.actions = actions

    def _real_spec(self, name, path, target):
        for finder in sys.meta_path:
            find_spec = None if finder is self else getattr(finder, "find_spec", None)
            spec = find_spec(name, path, target) if find_spec else None
            if spec is not None:
                return spec
        return None

    def find_spec(self, name, path=None, target=None):
        if name not in self.actions:
            return None
        spec = self._real_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader, action = spec.loader, self.actions[name]

        def exec_module(module):
            del loader.exec_module
            loader.exec_module(module)
            _try(action, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            _complain(name + " comes from a loader that cannot be followed")
        return spec


_said = []


def _complain(what):
    if not _said:
        sys.stderr.write("synccount: module ranges are not available: %s\n" % what)
    _said.append(what)


def _try(action, *arguments):
    try:
        action(*arguments)
    except Exception as problem:  # the program goes on without ranges
        _complain("%s: %s" % (type(problem).__name__, problem))


def install():
    actions = {
        "torch.nn.modules.module": _on_module,
        "torch.optim.optimizer": _on_optimizer,
        "torch.compiler": _on_compiler,
        "torch._dynamo.callback": _on_dynamo,
        "torch.autograd.profiler": _on_profiler,
    }
    for name, action in actions.items():
        if name in sys.modules:  # something in a .pth file was faster
            _try(action, sys.modules[name])
    sys.meta_path.insert(0, _Finder(actions))


# ---- the tracer, as NVTX's headers talk to a tool ----------------------------------------------------------------


class _Nvtx:
    """A copy of NVTX of our own. PyTorch's has no domains, and it would make every call look its name up."""

    MARK, PUSH, POP, REGISTER, CREATE = 1, 4, 5, 10, 12  # NVTX_CBID_CORE2_...
    SLOTS = 16

    def __init__(self, library):
        import ctypes

        self.ctypes = ctypes
        pointer, number = ctypes.c_void_p, ctypes.c_int

        class Event(ctypes.Structure):  # nvtxEventAttributes_t, version 3
            _fields_ = [
                ("version", ctypes.c_uint16),
                ("size", ctypes.c_uint16),
                ("category", ctypes.c_uint32),
                ("color_type", ctypes.c_int32),
                ("color", ctypes.c_uint32),
                ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32),
                ("payload", ctypes.c_uint64),
                ("message_type", ctypes.c_int32),
                ("message", pointer),
            ]

        class Callbacks(ctypes.Structure):  # NvtxExportTableCallbacks
            _fields_ = [("size", ctypes.c_size_t), ("get_table", pointer)]

        get_table_type = ctypes.CFUNCTYPE(number, number, ctypes.POINTER(pointer), ctypes.POINTER(ctypes.c_uint))
        get_export_type = ctypes.CFUNCTYPE(pointer, ctypes.c_uint32)
        self.event = Event
        self.slots = (pointer * self.SLOTS)()
        first = ctypes.addressof(self.slots)
        each = ctypes.sizeof(pointer)
        tables = {1: (pointer * self.SLOTS)(), 5: (pointer * self.SLOTS)()}  # NVTX_CB_MODULE_CORE, _CORE2
        for slot in range(1, self.SLOTS):
            tables[5][slot] = first + slot * each

        def get_table(module, table, size):
            if module not in tables:
                return 0
            table[0] = ctypes.addressof(tables[module])
            size[0] = self.SLOTS
            return 1

        get_table = get_table_type(get_table)
        callbacks = Callbacks(ctypes.sizeof(Callbacks), ctypes.cast(get_table, pointer).value)

        def get_export(what):
            return ctypes.addressof(callbacks) if what == 1 else None  # NVTX_ETID_CALLBACKS

        get_export = get_export_type(get_export)
        self.keep = (tables, get_table, callbacks, get_export)
        initialise = ctypes.CDLL(library).InitializeInjectionNvtx2
        initialise.argtypes, initialise.restype = [get_export_type], number
        if not initialise(get_export):
            raise OSError(library + " does not take ranges")
        # PYFUNCTYPE: the interpreter's lock is kept, which is quicker than giving it up for so short a call.
        self.push = self._function(self.PUSH, number, pointer, pointer)
        self.pop = self._function(self.POP, number, pointer)
        self.put_mark = self._function(self.MARK, None, pointer, pointer)
        self.register = self._function(self.REGISTER, pointer, pointer, ctypes.c_char_p)
        self.create = self._function(self.CREATE, pointer, ctypes.c_char_p)
        self.ranges, self.marks = self.create(_DOMAIN), self.create(_MARKS)
        self.of_marks = {}

    def _function(self, slot, result, *arguments):
        if not self.slots[slot]:
            raise OSError("the tracer lacks an NVTX function (%d)" % slot)
        return self.ctypes.PYFUNCTYPE(result, *arguments)(self.slots[slot])

    def make_event(self, domain, name):
        event = self.event(version=3, size=self.ctypes.sizeof(self.event), message_type=3)
        event.message = self.register(domain, name.encode("utf-8", "replace"))
        return event

    def mark(self, name):
        event = self.of_marks.get(name)
        if event is None:
            event = self.of_marks[name] = self.make_event(self.marks, name)
        self.put_mark(self.marks, self.ctypes.addressof(event))


_nvtx = None


def _tracer():
    """The way to the tracer, or None where PyTorch has no CUDA (its modules then cannot wait for a GPU)."""
    global _nvtx
    if getattr(sys.modules.get("torch.version"), "cuda", None) is None:
        return None
    if _nvtx is None:
        _nvtx = _Nvtx(os.environ["SYNCCOUNT_TORCH_MODULES"])
    return _nvtx


# ---- names of modules --------------------------------------------------------------------------------------------


class _Entry:
    """What is known of a module: its name, and its range as the tracer wants it."""

    __slots__ = ("module", "name", "size", "root", "asked", "around", "event", "address")

    def __init__(self, module, name, size, root, around):
        self.module = module  # a weak reference
        self.name = name
        self.size = size  # modules in the tree that it was named in
        self.root = root  # named by its class: nothing around it knew it
        self.asked = None  # of a root: the entry that was asked for it last
        self.around = around  # the wrapper of the same name
        self.event = None
        self.address = 0

    def prepare(self):
        self.event = _nvtx.make_event(_nvtx.ranges, self.name)
        self.address = _nvtx.ctypes.addressof(self.event)
        return self.address


_known = {}  # by id(): a weak dictionary would ask each module for its hash and equality


def _remember(module, name, size=0, root=True, around=None):
    import weakref

    key = id(module)

    def forget(reference):
        entry = _known.get(key)
        if entry is not None and entry.module is reference:
            del _known[key]

    entry = _known[key] = _Entry(weakref.ref(module, forget), name, size, root, around)
    return entry


def _class_name(module):
    name = type(module).__name__
    if name == "OptimizedModule":
        return _class_name(module._modules["_orig_mod"])
    if name in _SCRIPTED:
        return getattr(module, "original_name", None) or name
    return name


def _join(prefix, name):
    return prefix + "." + name if prefix and name else prefix or name


def _hides(entry):
    """Modules inside this one run without being called. One without any hides none."""
    module = entry.module()
    if module is not None and module._modules:
        _nvtx.mark("compiled:" + entry.name)


def _name_tree(top, name, size=0, inside=False):
    """Names a module and all below it, by the first path where a module occurs twice. name "": a root. What was named
    in a larger tree before keeps that name; so does everything, if the root is called inside another module."""
    root, of_path = not name, {}
    parallel = root and type(top).__name__ in _PARALLEL
    modules = list(top.named_modules())
    size, hidden = max(size, len(modules)), None
    for path, module in modules:
        known = _known.get(id(module))
        if known is not None and known.module() is module and module is not top and (inside or known.size >= size):
            of_path[path] = known
            continue
        parts = [part for part in path.split(".") if part and part not in _TRANSPARENT]
        if parallel and parts and parts[0] == "module":
            del parts[0]
        own = _join(name, ".".join(parts)) or _class_name(module)
        around = of_path.get(path.rpartition(".")[0]) if path else None
        if around is not None and around.name != own:
            around = None
        of_path[path] = _remember(module, own, size, root and module is top, around)
        if type(module).__name__ in _COMPILED and (hidden is None or not path.startswith(hidden)):
            hidden = path + "." if path else ""  # what lies below it need not be told as well
            _hides(of_path[path])
    return of_path[""]


def _path_below(top, wanted):
    """The path from a module to one below it that was put there after the names were given, or None. Descends into what
    has no name yet and into lists of modules: what has a name was there before."""
    open_ends = [("", top)]
    while open_ends:
        path, module = open_ends.pop()
        for name, child in module._modules.items():
            if child is None:
                continue
            below = _join(path, name)
            if child is wanted:
                return below
            if id(child) not in _known or type(child).__name__ in _CONTAINERS:
                open_ends.append((below, child))
    return None


def _name(module, stack):
    if stack:
        caller = stack[-1]
        owner = caller.module()
        path = _path_below(owner, module) if owner is not None else None
        if path is not None:
            return _name_tree(module, _join("" if caller.root else caller.name, path), caller.size)
        entry = _known.get(id(module))
        if entry is not None and entry.module() is module:
            entry.asked = caller
            return entry
    entry = _name_tree(module, "", inside=bool(stack))
    entry.asked = stack[-1] if stack else None
    return entry


# ---- calls of modules --------------------------------------------------------------------------------------------


def _is_compiling():
    return False  # until torch.compiler says it


def _enter(module):
    """Opens the module's range; returns this thread's open modules, or None where nothing was opened."""
    try:
        stack = _local.stack
    except AttributeError:
        stack = _local.stack = []
    entry = _known.get(id(module))
    if entry is None or entry.module() is not module or (entry.root and stack and entry.asked is not stack[-1]):
        try:
            entry = _name(module, stack)
        except Exception:  # a module that cannot be asked for its parts
            entry = _remember(module, type(module).__name__)
            entry.asked = stack[-1] if stack else None
    if entry.around is not None and stack and stack[-1] is entry.around:
        return None
    try:
        _push(_ranges, entry.address or entry.prepare())
    except Exception:  # too deep a recursion: ctypes gives it another name, and the program is about to meet it itself
        return None
    stack.append(entry)
    return stack


def _leave(stack):
    entry = stack.pop()
    _pop(_ranges)
    if not stack:
        _nvtx.mark("forward-end:" + entry.name)


_WRAPPER = """
def _wrapped_call_impl(self, *args, **kwargs):
    if _is_compiling():
        return _original(self, *args, **kwargs)
    _stack = _enter(self)
    try:
        return _original(self, *args, **kwargs)
    finally:
        if _stack is not None:
            _leave(_stack)
"""


def _make_wrapper(original):
    import ast

    code = original.__code__
    tree = ast.parse(_WRAPPER)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = code.co_firstlineno
            node.col_offset = node.end_col_offset = -1  # no column to point at
    space = globals()
    space["_original"] = original
    exec(compile(tree, code.co_filename, "exec"), space)
    wrapper = space.pop("_wrapped_call_impl")
    wrapper.__module__, wrapper.__qualname__ = original.__module__, original.__qualname__
    wrapper.__doc__ = original.__doc__
    return wrapper


def _on_module(module):
    import threading

    nvtx = _tracer()
    if nvtx is None:
        return
    space = globals()
    space["_local"] = threading.local()
    space["_push"], space["_pop"], space["_ranges"] = nvtx.push, nvtx.pop, nvtx.ranges
    module.Module.__call__ = _make_wrapper(module.Module.__call__)


# ---- the rest of PyTorch -----------------------------------------------------------------------------------------


def _on_compiler(compiler):
    if hasattr(compiler, "is_compiling"):
        globals()["_is_compiling"] = compiler.is_compiling


_optimizers = {}  # id() to (weak reference, name of its marks)
_steppers = 0  # optimizers so far: an id comes again, a number does not


def _after_step(optimizer, args, kwargs):
    global _steppers
    if _is_compiling():
        return
    import weakref

    known = _optimizers.get(id(optimizer))
    if known is None or known[0]() is not optimizer:
        known = _optimizers[id(optimizer)] = (weakref.ref(optimizer), "step-end:%d" % _steppers)
        _steppers += 1
    _nvtx.mark(known[1])


def _on_optimizer(module):
    if _tracer() is not None and hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_post_hook(_after_step)


def _on_dynamo(callback):
    """What is compiled runs later without the modules in it being called. The handler's list of callbacks is no place
    for ours: torch._dynamo.reset() empties it."""
    handler = getattr(callback, "CompilationCallbackHandler", None)
    original = getattr(handler, "run_start_callbacks", None)
    if original is None or _tracer() is None:
        return

    def run_start_callbacks(self, *args, **kwargs):
        stack = getattr(_local, "stack", None)
        if stack:
            _hides(stack[-1])
        else:
            _nvtx.mark("compiled:(a function outside modules)")
        return original(self, *args, **kwargs)

    handler.run_start_callbacks = run_start_callbacks


def _on_profiler(profiler):
    """Kineto cannot have CUPTI while the tracer has it. (If Kineto came first, the tracer knows and says so.)"""
    profile = getattr(profiler, "profile", None)
    original = getattr(profile, "_start_trace", None)
    if original is None or _tracer() is None:
        return

    def _start_trace(self, *args, **kwargs):
        if any(getattr(activity, "name", "") == "CUDA" for activity in getattr(self, "kineto_activities", ())):
            _nvtx.mark("profiler:torch")
        return original(self, *args, **kwargs)

    profile._start_trace = _start_trace
