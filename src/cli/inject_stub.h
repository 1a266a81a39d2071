/* SPDX-License-Identifier: Apache-2.0
 * Where things lie in the memory that calls in another process are made from: the code of inject_stub.S first. */
#ifndef SC_CLI_INJECT_STUB_H
#define SC_CLI_INJECT_STUB_H

#define INJECT_STATE_PLACE 512   /* struct stub_state of inject_call.c */
#define INJECT_XSTATE_PLACE 4096 /* as PTRACE_GETREGSET gives it; aligned to 64 */
#define INJECT_TEXT_PLACE (INJECT_XSTATE_PLACE + 32768)

#endif
