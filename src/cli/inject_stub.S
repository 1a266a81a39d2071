/* SPDX-License-Identifier: Apache-2.0
 * Copied into another process, to make a call there (x86-64). Runs from any address.
 *
 * The call, then a signal to itself, which the tracer takes as the sign of return and takes away. It is not a trap,
 * which would cost a program that ignores SIGTRAP its setting, but a signal that nobody minds should there be no tracer
 * any more. Whoever runs on from there has none: signal mask, errno, vector state and registers are put back, and the
 * program goes on. The state is only read, so the page needs no right to be written. */
#include "cli/inject_stub.h"

#ifdef __x86_64__
        .set state, inject_stub + INJECT_STATE_PLACE

        .text
        .globl inject_stub, inject_stub_syscall, inject_stub_returned, inject_stub_end
        .hidden inject_stub, inject_stub_syscall, inject_stub_returned, inject_stub_end
inject_stub:
        call *%rbx              /* a call and a return: a shadow stack stays in step */
        mov %rax, %r12
        mov $39, %eax           /* getpid */
        syscall
        mov %eax, %edi
        mov $186, %eax          /* gettid */
        syscall
        mov %eax, %esi
        mov $23, %edx           /* SIGURG */
        mov $234, %eax          /* tgkill */
inject_stub_syscall:
        syscall
inject_stub_returned:
        mov $14, %eax           /* rt_sigprocmask(SIG_SETMASK, &state.mask, NULL, 8) */
        mov $2, %edi
        lea state(%rip), %rsi
        xor %edx, %edx
        mov $8, %r10d
        syscall
        mov state + 8(%rip), %rcx
        test %rcx, %rcx
        jz 1f
        mov state + 16(%rip), %eax
        mov %eax, (%rcx)        /* errno */
1:      mov $-1, %eax
        mov $-1, %edx
        lea inject_stub + INJECT_XSTATE_PLACE(%rip), %rcx
        xrstor64 (%rcx)
        mov state + 48(%rip), %rax
        mov state + 56(%rip), %rbx
        mov state + 64(%rip), %rcx
        mov state + 72(%rip), %rdx
        mov state + 80(%rip), %rsi
        mov state + 88(%rip), %rdi
        mov state + 96(%rip), %rbp
        mov state + 104(%rip), %r8
        mov state + 112(%rip), %r9
        mov state + 120(%rip), %r10
        mov state + 128(%rip), %r11
        mov state + 136(%rip), %r12
        mov state + 144(%rip), %r13
        mov state + 152(%rip), %r14
        mov state + 160(%rip), %r15
        push state + 24(%rip)   /* the flags, by a stack that a signal's handler can use */
        popfq
        mov state + 32(%rip), %rsp
        jmp *state + 40(%rip)
inject_stub_end:
#endif
        .section .note.GNU-stack, "", @progbits
