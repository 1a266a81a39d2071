# SPDX-License-Identifier: Apache-2.0
class CompilationCallbackHandler:
    def __init__(self):
        self.start_callbacks = []

    def run_start_callbacks(self, args):
        for callback in self.start_callbacks:
            callback(args)


callback_handler = CompilationCallbackHandler()
