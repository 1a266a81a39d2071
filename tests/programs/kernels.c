/* SPDX-License-Identifier: Apache-2.0
 * The fatbin of kernels.cu, embedded as it came from nvcc (TEST_KERNELS_FATBIN is its path). */
#include "program.h"

__asm__(".section .rodata\n"
        ".balign 64\n"
        ".global test_kernels_image\n"
        "test_kernels_image:\n"
        ".incbin \"" TEST_KERNELS_FATBIN "\"\n"
        "test_kernels_image_end:\n"
        ".balign 8\n"
        ".global test_kernels_size\n"
        "test_kernels_size:\n"
        ".quad test_kernels_image_end - test_kernels_image\n"
        ".previous\n");
