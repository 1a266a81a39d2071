# SPDX-License-Identifier: Apache-2.0
from .module import Module


class Identity(Module):
    def forward(self, x=None):
        return x


class ModuleList(Module):
    def __init__(self, modules=()):
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module):
        self._modules[str(len(self._modules))] = module

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        return self._modules[str(index)]


class Sequential(ModuleList):
    def __init__(self, *modules):
        super().__init__(modules)

    def forward(self, x=None):
        for module in self:
            x = module(x)
        return x


class DataParallel(Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module(*args)
