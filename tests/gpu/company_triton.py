# SPDX-License-Identifier: Apache-2.0
"""The kernel of company_programs.py's Triton program: Triton reads the source of a kernel from a file."""
import triton
import triton.language as tl


@triton.jit
def add_one(pointer, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(pointer + at, tl.load(pointer + at, mask=at < count) + 1, mask=at < count)
