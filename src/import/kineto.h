/* SPDX-License-Identifier: Apache-2.0
 * What the files of the Kineto importer share: one event of a Chrome trace as the PyTorch profiler writes it
 * (kineto_event.c), what its names say (kineto_names.c), and the way in for tests (kineto.c). */
#ifndef SC_IMPORT_KINETO_H
#define SC_IMPORT_KINETO_H

#include "import/feed.h"
#include "import/json_stream.h"

enum kineto_category {
  KINETO_OTHER,      /* nothing that matters here */
  KINETO_CALL,       /* CUDA runtime or driver call */
  KINETO_FOREIGN,    /* call of an accelerator's runtime that is certainly not CUDA */
  KINETO_OPERATOR,   /* PyTorch operator (aten::item) */
  KINETO_ANNOTATION, /* record_function, ProfilerStep */
  KINETO_PYTHON,     /* Python function, or the call of a torch.nn.Module */
  KINETO_KERNEL,
  KINETO_COPY,
  KINETO_MEMSET,
  KINETO_SYNC,
};

#define KINETO_NAME_MAX 1024 /* bytes of a name that are kept */
#define KINETO_LABEL_MAX 256

struct kineto_event {
  char phase; /* 'X', 'B', 'E', 'M', ...; 0: none */
  enum kineto_category category;
  bool has_category, has_start, has_duration, has_pid, has_tid, has_stream;
  int64_t start_ns, duration_ns, pid, tid;             /* a pid or tid that is text: its hash */
  int64_t correlation, device, context, stream, bytes; /* 0 when absent; device -1 */
  char name[KINETO_NAME_MAX];
  size_t name_length;
  char label[KINETO_LABEL_MAX]; /* args.name, of metadata */
  size_t label_length;
  uint64_t offset;
  const char *wrong; /* what cannot be used in it; NULL: nothing */
};

/* Reads the members of an object that sc_json_next has just opened. False: the text failed. */
bool kineto_event_read(struct sc_json *json, struct kineto_event *event);

/* "Memcpy DtoH (Device -> Pinned)"; what the name does not tell is NONE and UNKNOWN. */
void kineto_copy_kinds(const char *name, uint8_t *direction, uint8_t *src, uint8_t *dst);
/* "Memset (Device)" */
uint8_t kineto_memset_kind(const char *name);
/* Whose call this is, by the prefix of its name: "CUDA", "HIP (AMD)", ...; NULL: nobody's we know. */
const char *kineto_vendor(const char *name);
bool kineto_is_cuda(const char *name);

/* "dir/file.py(12): function" cut into its parts in place; false: it has no such form (a built-in: function is then the
 * whole name). Addresses (" at 0x7f12...") are taken out first: they would make every call a function of its own. */
struct kineto_function {
  const char *file, *function;
  uint32_t line;
};
bool kineto_function_parse(char *name, struct kineto_function *out);
/* "nn.Module: Linear_0" -> "Linear_0", else NULL. */
const char *kineto_module(const char *name);

/* sc_import_kineto on bytes from anywhere; path is for messages and findings. */
enum sc_status sc_kineto_read(sc_json_read *read, void *context, const char *path,
                              const struct sc_analysis_options *options, struct sc_findings *findings,
                              struct sc_error *err) SC_NODISCARD;

#endif
