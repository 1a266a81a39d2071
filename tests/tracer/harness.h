/* SPDX-License-Identifier: Apache-2.0
 * Plays CUPTI to the tracer's callback: calls are made up, what was recorded is read back from the file. */
#ifndef SC_TRACER_HARNESS_H
#define SC_TRACER_HARNESS_H

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "trace/trace.h"
#include "tracer/callback.h"

/* Once per program: opens a trace in a fresh folder and starts to record. */
void harness_begin(bool late);
/* Ends recording; the folder goes. */
void harness_end(void);
const char *harness_path(void);
/* Recording ends, and another session into the same file is prepared: callbacks come, and the gate is shut. */
void harness_pause(void);
void harness_go_on(void);

struct harness_call {
  int domain;
  uint32_t cbid;
  const char *name;
  const void *params;
  uint32_t correlation;
  void *context;
};
void harness_enter(const struct harness_call *call);
void harness_exit(const struct harness_call *call, int status);
/* Both, with a correlation id of its own. */
void harness_do(int domain, uint32_t cbid, const char *name, const void *params, int status);

/* A callback of the resource domain about the harness's context. */
void harness_resource(uint32_t cbid);

#define PARAMS(call, ...) (&(call##_params){ __VA_ARGS__ })
#define RT_ID(call) SC_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##call, #call
#define DR_ID(call) SC_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_##call, #call
#define RUNTIME(call, status, ...) harness_do(RT_ID(call), PARAMS(call, __VA_ARGS__), status)
#define DRIVER(call, status, ...) harness_do(DR_ID(call), PARAMS(call, __VA_ARGS__), status)
#define RUNTIME_VOID(call, status) harness_do(RT_ID(call), NULL, status)

/* What has been recorded since the last harness_mark, of all threads, in file order. */
struct harness_records {
  struct sc_record_call calls[256];
  size_t call_count;
  struct sc_record_range ranges[256];
  char names[256][64], domains[256][64]; /* of the ranges */
  size_t range_count;
  char notes[8][256];
  uint32_t note_ids[8];
  size_t note_count;
  uint64_t tail_submissions, tail_launches;
  uint64_t lost; /* of the whole trace */
};
void harness_mark(void);
const struct harness_records *harness_read(void);
/* The one call recorded since the mark; fails the test if there is not exactly one. */
struct sc_record_call harness_one(void);
const char *harness_api(const struct sc_record_call *call);

#endif
