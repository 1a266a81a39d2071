/* SPDX-License-Identifier: Apache-2.0
 * Followed call by call: cudaStreamIsCapturing would be a CUDA call from a callback. */
#include "tracer/capture.h"

#include <pthread.h>
#include <stdlib.h>

struct member { /* a stream or an event of a capture */
  struct member *next;
  struct sc_stream_key key; /* events: stream is the event, thread is NULL */
  uint64_t capture;
  bool event, origin;
};

_Atomic unsigned sc_capture_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member *members;
static uint64_t last_capture;

static struct member **find(struct sc_stream_key key, bool event) {
  struct member **at = &members;
  while (*at != NULL && ((*at)->event != event || (*at)->key.stream != key.stream || (*at)->key.thread != key.thread))
    at = &(*at)->next;
  return at;
}

static bool put(struct sc_stream_key key, uint64_t capture, bool event, bool origin) {
  struct member *member = *find(key, event);
  if (member == NULL) {
    member = calloc(1, sizeof(*member));
    if (member == NULL)
      return false;
    member->next = members;
    members = member;
  }
  *member = (struct member){ .next = member->next, .key = key, .capture = capture, .event = event, .origin = origin };
  return true;
}

static void drop(struct member **at) {
  struct member *gone = *at;
  *at = gone->next;
  free(gone);
}

static void end_capture(uint64_t capture) {
  for (struct member **at = &members; *at != NULL;) {
    if ((*at)->capture == capture)
      drop(at);
    else
      at = &(*at)->next;
  }
  atomic_fetch_sub_explicit(&sc_capture_count, 1, memory_order_relaxed);
}

void sc_capture_begin(struct sc_stream_key origin) {
  pthread_mutex_lock(&lock);
  struct member *old = *find(origin, false);
  if (old != NULL && old->origin) /* its end was not seen */
    end_capture(old->capture);
  if (put(origin, ++last_capture, false, true))
    atomic_fetch_add_explicit(&sc_capture_count, 1, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
}

void sc_capture_end(struct sc_stream_key origin) {
  pthread_mutex_lock(&lock);
  const struct member *member = *find(origin, false);
  if (member != NULL && member->origin)
    end_capture(member->capture);
  pthread_mutex_unlock(&lock);
}

void sc_capture_record(uint64_t event, struct sc_stream_key stream) {
  struct sc_stream_key key = { event, NULL };
  pthread_mutex_lock(&lock);
  const struct member *member = *find(stream, false);
  struct member **old = find(key, true);
  if (member != NULL)
    put(key, member->capture, true, false);
  else if (*old != NULL) /* recorded anew outside: no longer the capture's */
    drop(old);
  pthread_mutex_unlock(&lock);
}

void sc_capture_wait(struct sc_stream_key stream, uint64_t event) {
  pthread_mutex_lock(&lock);
  const struct member *member = *find((struct sc_stream_key){ event, NULL }, true);
  if (member != NULL && *find(stream, false) == NULL)
    put(stream, member->capture, false, false);
  pthread_mutex_unlock(&lock);
}

void sc_capture_drop_stream(struct sc_stream_key stream) {
  pthread_mutex_lock(&lock);
  struct member **at = find(stream, false);
  if (*at != NULL && (*at)->origin)
    end_capture((*at)->capture);
  else if (*at != NULL)
    drop(at);
  pthread_mutex_unlock(&lock);
}

void sc_capture_drop_event(uint64_t event) {
  pthread_mutex_lock(&lock);
  struct member **at = find((struct sc_stream_key){ event, NULL }, true);
  if (*at != NULL)
    drop(at);
  pthread_mutex_unlock(&lock);
}

bool sc_capture_holds(struct sc_stream_key stream) {
  pthread_mutex_lock(&lock);
  bool held = *find(stream, false) != NULL;
  pthread_mutex_unlock(&lock);
  return held;
}

void sc_capture_reset(void) {
  pthread_mutex_lock(&lock);
  while (members != NULL)
    drop(&members);
  atomic_store_explicit(&sc_capture_count, 0, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
}
