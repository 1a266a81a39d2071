/* SPDX-License-Identifier: Apache-2.0
 * What the command line and a dormant tracer say to each other, through a Unix stream socket in a folder that only the
 * process's own user can enter. One request of a fixed size, one answer of a fixed size. Whoever has started counting
 * keeps the connection: counting ends with it.
 *
 * struct sc_control_head never changes; all that follows it may, with SC_CONTROL_VERSION. */
#ifndef SC_TRACE_CONTROL_H
#define SC_TRACE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SC_CONTROL_MAGIC "SCTL" /* 4 bytes, no NUL */
#define SC_CONTROL_VERSION 1u

enum sc_control_command {
  SC_CONTROL_STATUS = 1,
  SC_CONTROL_START = 2,
  SC_CONTROL_STOP = 3, /* by who started */
};
enum sc_control_answer {
  SC_CONTROL_DONE = 0,
  SC_CONTROL_BUSY = 1,    /* somebody else is counting: `other` is their process */
  SC_CONTROL_REFUSED = 2, /* it cannot be done: `text` says why */
  SC_CONTROL_FOREIGN = 3, /* another version's request; only the head and `release` count */
};

struct sc_control_head { /* 16 bytes, the same in every version */
  char magic[4];
  uint32_t version;
  uint32_t size; /* of the whole message */
  uint32_t what; /* enum sc_control_command or enum sc_control_answer */
};

struct sc_control_request { /* texts are NUL-terminated; "" is not given */
  struct sc_control_head head;
  char release[32]; /* SC_VERSION of who asks */
  char api[32], stacks[32], max_trace[32]; /* as SYNCCOUNT_API, SYNCCOUNT_STACKS, SYNCCOUNT_MAX_TRACE */
  char output[3936];                       /* folder of the trace, absolute */
};
struct sc_control_reply {
  struct sc_control_head head;
  char release[32];
  uint32_t other;    /* process that counts, of BUSY, or of STATUS; 0: nobody */
  uint32_t flags;    /* of a STOP */
  uint64_t lost;     /* likewise: records that found no room */
  char text[1104];
};
enum sc_control_flag {
  SC_CONTROL_FULL = 1,      /* recording stopped for want of room */
  SC_CONTROL_LEFT_OPEN = 2, /* a thread was still inside the tracer: the trace is as a killed process leaves it */
};
_Static_assert(sizeof(struct sc_control_request) == 4080, "request");
_Static_assert(sizeof(struct sc_control_reply) == 1168, "reply");

/* Where the socket of a process is: the folder, and the file in it, for `place` 0, 1, ... below SC_CONTROL_PLACES.
 * runtime: XDG_RUNTIME_DIR, or NULL; temporary: TMPDIR, or NULL. False if there is no such place, or its name is too long
 * for a socket. */
#define SC_CONTROL_PLACES 3u
#define SC_CONTROL_PATH 108u /* of struct sockaddr_un */
bool sc_control_place(unsigned place, const char *runtime, const char *temporary, uid_t uid, pid_t pid,
                      char folder[static SC_CONTROL_PATH], char socket[static SC_CONTROL_PATH]);

#endif
