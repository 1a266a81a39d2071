# SPDX-License-Identifier: Apache-2.0
"""Found first on PYTHONPATH under `synccount run --torch-modules`: makes PyTorch's modules known to the tracer, then
runs the sitecustomize that would have been found without this one. Everything here must go unnoticed by the program.
"""

import os
import sys


def _start():
    folder = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info >= (3, 8) and os.environ.get("SYNCCOUNT_TORCH_MODULES"):
        import synccount_torch

        synccount_torch.install()
    # Children find this folder through PYTHONPATH. This process has what it needs.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != folder]


def _chain():
    """The other sitecustomize takes this one's place in sys.modules; what it raises is Python's to report."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start()
except Exception as problem:  # the program must not miss its own sitecustomize because of us
    sys.stderr.write("synccount: module ranges are not available: %s: %s\n" % (type(problem).__name__, problem))
_chain()
