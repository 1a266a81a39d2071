# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as --torch-modules touches, with its own file names and order of imports: Module.__call__ and the
attributes around it, optimizers with their global hooks, the compiler's flag and callbacks, the profiler."""
from . import version
from . import nn, optim, autograd, compiler, _dynamo
