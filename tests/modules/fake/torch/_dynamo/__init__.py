# SPDX-License-Identifier: Apache-2.0
"""A compiler that runs forward as it is, without calling the modules in it through __call__ again."""
from .. import nn
from . import callback

seen_call = nn.Module.__call__  # as torch._dynamo.utils remembers it


class OptimizedModule(nn.Module):
    def __init__(self, module):
        super().__init__()
        self._orig_mod = module
        self.ready = False

    def forward(self, *args):
        if not self.ready:
            callback.callback_handler.run_start_callbacks(None)
            self.ready = True
        return self._orig_mod(*args)


def reset():
    callback.callback_handler.start_callbacks.clear()
