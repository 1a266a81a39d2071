# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose step calls the global hooks."""
_global_optimizer_post_hooks = {}


def register_optimizer_step_post_hook(hook):
    _global_optimizer_post_hooks[len(_global_optimizer_post_hooks)] = hook


class Optimizer:
    def step(self):
        for hook in _global_optimizer_post_hooks.values():
            hook(self, (), {})


class SGD(Optimizer):
    pass
