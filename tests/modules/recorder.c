/* SPDX-License-Identifier: Apache-2.0
 * A tool in the tracer's place: takes what NVTX's functions are called with and appends it to the file that
 * RECORDER_FILE names, one line each: "push DOMAIN NAME", "pop DOMAIN", "mark DOMAIN NAME", after a thread's number. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int threads;
static __thread int thread;

static void say(const char *what, nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
  const char *path = getenv("RECORDER_FILE");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    abort();
  if (thread == 0)
    thread = ++threads;
  pthread_mutex_lock(&lock);
  fprintf(file, "%d %s %s", thread, what, (const char *)domain);
  if (event && (event->messageType != NVTX_MESSAGE_TYPE_REGISTERED || event->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE))
    abort();
  fprintf(file, "%s%s\n", event ? " " : "", event ? (const char *)event->message.registered : "");
  fclose(file);
  pthread_mutex_unlock(&lock);
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
  say("push", domain, event);
  return 0;
}
static int pop(nvtxDomainHandle_t domain)
{
  say("pop", domain, NULL);
  return 0;
}
static void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) { say("mark", domain, event); }
static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text)
{
  return domain ? (nvtxStringHandle_t)strdup(text) : NULL;
}
static nvtxDomainHandle_t create(const char *name) { return (nvtxDomainHandle_t)strdup(name); }

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
  static const struct {
    unsigned slot;
    NvtxFunctionPointer function;
  } entries[] = {{NVTX_CBID_CORE2_DomainMarkEx, (NvtxFunctionPointer)mark},
                 {NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)push},
                 {NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)pop},
                 {NVTX_CBID_CORE2_DomainRegisterStringA, (NvtxFunctionPointer)register_string},
                 {NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)create}};
  const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned size;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    if (entries[i].slot >= size)
      return 0;
    *table[entries[i].slot] = entries[i].function;
  }
  return 1;
}
