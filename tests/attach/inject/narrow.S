/* SPDX-License-Identifier: Apache-2.0
 * A 32-bit program without any library: pause for ever. */
        .code32
        .globl _start
_start: mov $29, %eax
        int $0x80
        jmp _start
        .section .note.GNU-stack, "", @progbits
