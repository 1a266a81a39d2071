/* SPDX-License-Identifier: Apache-2.0
 * What the four stand-in libraries share: the frame that every entry point puts around its work (callbacks,
 * correlation, faults), and the few private services that libcuda exports to its three companions. All of it is
 * exported as simcuda_*. */
#ifndef SIMCUDA_HOOKS_H
#define SIMCUDA_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simcuda.h"

#define SIMCUDA_EXPORT __attribute__((visibility("default")))

enum simcuda_domain { SIMCUDA_DRIVER = 1, SIMCUDA_RUNTIME = 2, SIMCUDA_DOMAINS = 3 }; /* CUPTI's own numbers */
enum { SIMCUDA_MAX_CBID = 1024 };

/* One API call in flight. Lives on the caller's stack. */
struct simcuda_call {
  enum simcuda_domain domain;
  uint32_t cbid;
  const char *name;   /* a constant */
  const char *symbol; /* kernel name of a launch, else NULL */
  const void *params; /* generated_*_meta.h struct, or NULL when the function takes nothing */
  int result;         /* valid at EXIT */
  uint64_t slot;      /* shared by ENTER and EXIT */
  uint32_t correlation;
  bool delivered; /* ENTER went out, so EXIT has to */
};

/* Bits of simcuda_watch; 0 (nobody subscribed, nothing to break) makes an entry point cost one load. */
enum { SIMCUDA_WATCH_CALLBACKS = 1, SIMCUDA_WATCH_FAULTS = 2 };
extern SIMCUDA_EXPORT atomic_uint simcuda_watch;

/* ENTER side: counts nesting, delivers the callback, and returns the error to inject or 0. */
SIMCUDA_EXPORT int simcuda_call_begin(struct simcuda_call *call);
/* EXIT side, for each begin. */
SIMCUDA_EXPORT void simcuda_call_end(struct simcuda_call *call, int result);

/* Defines the exported function `fn` around the expression `work`, which may use the arguments, `per_thread`, and the
 * macro's symbol. The callback id is named beside the function, so a wrong one does not compile. */
#define SIMCUDA_ENTRY(fn, type, domain_, cbid_, prm, pt, before, after, symbol_, decl, work)  \
  SIMCUDA_EXPORT type fn decl;                                                                \
  type fn decl                                                                                \
  {                                                                                           \
    static const bool per_thread = pt;                                                        \
    (void)per_thread;                                                                         \
    int simcuda_result = before;                                                              \
    if (simcuda_result != 0)                                                                  \
      return (type)after(simcuda_result);                                                     \
    if (__builtin_expect(atomic_load_explicit(&simcuda_watch, memory_order_relaxed) == 0, 1)) \
      return (type)after((int)(work));                                                        \
    struct simcuda_call simcuda_frame = {                                                     \
        .domain = domain_, .cbid = cbid_, .name = #fn, .symbol = symbol_, .params = prm};     \
    simcuda_result = simcuda_call_begin(&simcuda_frame);                                      \
    if (simcuda_result == 0)                                                                  \
      simcuda_result = (int)(work);                                                           \
    simcuda_result = after(simcuda_result);                                                   \
    simcuda_call_end(&simcuda_frame, simcuda_result);                                         \
    return (type)simcuda_result;                                                              \
  }
#define SIMCUDA_ARGS(...) __VA_ARGS__

/* ---- for libcupti ---- */
typedef void (*simcuda_deliver_fn)(struct simcuda_call *call, bool exit);
/* Installs the one subscriber (or removes it, NULL). Returns the name of the tool that holds the slot, or NULL when it
 * was free. */
SIMCUDA_EXPORT const char *simcuda_subscribe(simcuda_deliver_fn deliver, const char *name);
SIMCUDA_EXPORT void simcuda_unsubscribe(void);
/* One byte per callback id. */
SIMCUDA_EXPORT int simcuda_enable(enum simcuda_domain domain, uint32_t cbid, bool on);
SIMCUDA_EXPORT bool simcuda_enabled(enum simcuda_domain domain, uint32_t cbid);
SIMCUDA_EXPORT void *simcuda_current_context(uint32_t *id);
/* 1-based id of a context, 0 when it is none; its device's ordinal. */
SIMCUDA_EXPORT uint32_t simcuda_context_id(void *context, int *device);

/* ---- for libcudart and libcublas ---- */
/* Gives a kernel that is not in the program's table a handle for cuLaunchKernel. NULL when the table is full. */
SIMCUDA_EXPORT void *simcuda_add_kernel(const struct simcuda_kernel *kernel);
/* The handle for a name in the program's table, or NULL. */
SIMCUDA_EXPORT void *simcuda_find_kernel(const char *name);
/* The description behind a handle, NULL when the pointer is no handle. */
SIMCUDA_EXPORT const struct simcuda_kernel *simcuda_kernel_of(const void *handle);
/* Name ("cudaErrorMemoryAllocation" or "CUDA_ERROR_OUT_OF_MEMORY") and text of an error, NULL when there is no such
 * error. */
SIMCUDA_EXPORT const char *simcuda_error_name(int error, bool runtime);
SIMCUDA_EXPORT const char *simcuda_error_text(int error);
/* Number of an error given by name (runtime or driver) or number, -1 when there is none. */
SIMCUDA_EXPORT int simcuda_error_number(const char *text);
/* SIMCUDA_THREADS and SIMCUDA_CUPTI_VERSION, 0 when unset. */
enum { SIMCUDA_MAX_THREADS = 16 };
SIMCUDA_EXPORT int simcuda_threads(void);
SIMCUDA_EXPORT uint32_t simcuda_cupti_version(void);
/* Writes one line to stderr, for the cases where a program under simulation has to be told why. */
SIMCUDA_EXPORT void simcuda_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
