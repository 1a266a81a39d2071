/* SPDX-License-Identifier: Apache-2.0
 * One translation unit, one fatbin: everything the probe loads. */
#include "expert.cu"
#include "masked.cu"
#include "random.cu"
#include "routing.cu"
#include "ruler.cu"
#include "sorted.cu"
#include "fused.cu"
