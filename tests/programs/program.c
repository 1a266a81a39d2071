/* SPDX-License-Identifier: Apache-2.0
 * What the test programs share: see program.h. */
#include "program.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <nvtx3/nvToolsExt.h>

#include "rows.h"

static nvtxDomainHandle_t row_domain(void) {
  static nvtxDomainHandle_t domain;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (domain == NULL)
    domain = nvtxDomainCreateA(SC_ROW_DOMAIN);
  nvtxDomainHandle_t result = domain;
  pthread_mutex_unlock(&lock);
  return result;
}

void row_begin(struct row_run *run) {
  nvtxEventAttributes_t attributes = {
    .version = NVTX_VERSION,
    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
    .messageType = NVTX_MESSAGE_TYPE_ASCII,
    .message.ascii = run->name,
  };
  nvtxDomainRangePushEx(row_domain(), &attributes);
  run->open = true;
}

void row_end(struct row_run *run) {
  if (run->open)
    nvtxDomainRangePop(row_domain());
  run->open = false;
}

void row_skip(struct row_run *run, const char *format, ...) {
  if (run->skipped || run->failed)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(run->why, sizeof run->why, format, arguments);
  va_end(arguments);
  run->skipped = true;
}

void row_fail(struct row_run *run, const char *format, ...) {
  if (run->failed)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(run->why, sizeof run->why, format, arguments);
  va_end(arguments);
  run->failed = true;
}

void row_report(const struct row_run *run) {
  if (run->failed)
    printf("row %s fail %s\n", run->name, run->why);
  else if (run->skipped)
    printf("row %s skip %s\n", run->name, run->why);
  else
    printf("row %s done\n", run->name);
  fflush(stdout);
}

bool row_wanted(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0)
      return true;
  return argc < 2;
}

bool run_on_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, argument) != 0)
    return false;
  return pthread_join(thread, NULL) == 0;
}

void gate_wait(void *gate) {
  struct gate *g = gate;
  const struct timespec nap = { .tv_nsec = 50 * 1000 };
  for (int i = 0; i < 400 * 1000 && !atomic_load_explicit(&g->open, memory_order_acquire); i++)
    nanosleep(&nap, NULL);
}

void gate_open(struct gate *gate) { atomic_store_explicit(&gate->open, true, memory_order_release); }
