# SPDX-License-Identifier: Apache-2.0
"""profile, which Kineto's start goes through."""
import enum


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 2


class profile:
    def __init__(self, activities):
        self.kineto_activities = set(activities)
        self.started = 0

    def _start_trace(self):
        self.started += 1

    def __enter__(self):
        self._start_trace()
        return self

    def __exit__(self, *_):
        return False
