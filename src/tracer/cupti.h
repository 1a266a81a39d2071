/* SPDX-License-Identifier: Apache-2.0
 * CUPTI, bound when it is needed: the copy that the process already has, or one that fits it. */
#ifndef SC_TRACER_CUPTI_H
#define SC_TRACER_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

#define SC_CUPTI_MIN 19 /* cuptiGetVersion of CUDA 12.0 */

struct sc_cupti {
  char path[4096];
  uint32_t version; /* cuptiGetVersion: 19 to 28 for CUDA 12, 130001 for 13.0 update 1 */
  void *subscriber;
  int (*get_version)(uint32_t *version);
  int (*subscribe)(void **subscriber, void (*callback)(void *, int, uint32_t, const void *), void *user);
  int (*subscribe_v2)(void **subscriber, void (*callback)(void *, int, uint32_t, const void *), void *user,
                      void *params);
  int (*unsubscribe)(void *subscriber);
  int (*enable)(uint32_t enable, void *subscriber, int domain, uint32_t cbid);
  int (*callback_name)(int domain, uint32_t cbid, const char **name);
  int (*device_of_context)(void *context, uint32_t *device);
  int (*result_text)(int result, const char **text); /* may be NULL */
};

/* Why tracing cannot be done, for the trace and for stderr. */
struct sc_cupti_failure {
  enum sc_note note;
  char text[512];     /* of the note: the holder's name (SC_NOTE_SLOT_TAKEN), or a sentence */
  char sentence[900]; /* one line: what was tried, what was found, what to do */
};

/* Finds a CUPTI and subscribes `callback` (nothing is enabled yet). `wanted`: SYNCCOUNT_CUPTI or NULL. `simulated`: a
 * symbol inside the stand-in libcuda, whose own folder then has the CUPTI that belongs to it; or NULL. True on success;
 * else *failure. Loaded libraries stay. */
bool sc_cupti_bind(struct sc_cupti *cupti, const char *wanted, const void *simulated,
                   void (*callback)(void *, int, uint32_t, const void *), struct sc_cupti_failure *failure);
/* "CUPTI_ERROR_NOT_INITIALIZED (15)" */
void sc_cupti_result(const struct sc_cupti *cupti, int result, char *text, size_t size);

#endif
