/* SPDX-License-Identifier: Apache-2.0
 * Starting and ending the victims. */
#ifndef SC_INJECT_VICTIMS_H
#define SC_INJECT_VICTIMS_H

#include "test_support.h"

#include <stdbool.h>
#include <sys/types.h>

#include "cli/inject.h"
#include "shared.h"

#define PATIENCE_MS 60000 /* the machine may be busy */

struct victim {
  pid_t pid;
  int fd;
  struct victim_page *page;
};

/* Path of a file in the folder of the victims; valid for the next 8 calls. */
const char *victim_file(const char *name);
/* Starts "inject_<program>" and waits until `ready` of its threads are at work. */
struct victim victim_start(const char *program, const char *mode, const char *argument, uint32_t ready);
/* Asks it to stop, with `signal` if not 0, waits, and fails the test unless it ended well and saw nothing wrong. */
void victim_stop(struct victim *victim, int signal);
void victim_kill(struct victim *victim);
/* Waits until the victim has made so many turns more. */
void victim_goes_on(const struct victim *victim, int thread, uint64_t turns);
/* The good library, and that it was started once more on the thread that outcome names. */
struct inject_outcome victim_inject(const struct victim *victim, const char *library);
void sleep_ms(unsigned ms);

/* Prints why and ends the program, as skipped, where ptrace is forbidden to everything. */
void victim_need_ptrace(void);

#endif
