# SPDX-License-Identifier: Apache-2.0
import os

cuda = os.environ.get("FAKE_TORCH_CUDA", "13.0") or None
