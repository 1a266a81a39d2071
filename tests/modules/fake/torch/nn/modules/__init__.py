# SPDX-License-Identifier: Apache-2.0
from .module import Module
from .container import DataParallel, Identity, ModuleList, Sequential
