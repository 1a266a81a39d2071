/* SPDX-License-Identifier: Apache-2.0
 * Two copies of CUPTI in one process do not work, so a copy that is already there comes first. Nothing is linked: the
 * tracer has to load in processes that never see CUDA, and with the CUPTI of whatever CUDA the program brought. */
#include "tracer/cupti.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum {                              /* CUpti results that we tell apart */
       RESULT_MAX_LIMIT = 12,       /* slot taken, before CUDA 11.6 or so */
       RESULT_NOT_INITIALIZED = 15, /* the driver is older than this CUPTI */
       RESULT_MULTIPLE_SUBSCRIBERS = 39,
};

struct subscriber_params { /* CUpti_SubscriberParams, which the headers of CUDA 12 do not have */
  size_t size;
  const char *name;
  char *old_name;
  size_t old_name_size;
};

/* What was tried, for the error message, and how far the best candidate came. */
struct search {
  struct sc_cupti *cupti;
  void (*callback)(void *, int, uint32_t, const void *);
  struct sc_cupti_failure *failure;
  bool found;  /* some CUPTI was loaded: `failure` says why it did not do */
  bool twelve; /* the process runs on CUDA 12's runtime */
  char bad_wanted[256];
};

void sc_cupti_result(const struct sc_cupti *cupti, int result, char *text, size_t size) {
  const char *name = NULL;
  if (cupti->result_text == NULL || cupti->result_text(result, &name) != 0 || name == NULL)
    name = "CUPTI error";
  (void)snprintf(text, size, "%s (%d)", name, result);
}

static void path_of(void *handle, const char *fallback, char *path, size_t size) {
  struct link_map *map = NULL;
  char resolved[PATH_MAX];
  const char *name = fallback;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name != NULL && map->l_name[0] != '\0')
    name = map->l_name;
  (void)snprintf(path, size, "%s", realpath(name, resolved) != NULL ? resolved : name);
}

static bool bind_functions(struct sc_cupti *cupti, void *handle) {
  *(void **)&cupti->get_version = dlsym(handle, "cuptiGetVersion");
  *(void **)&cupti->subscribe = dlsym(handle, "cuptiSubscribe");
  *(void **)&cupti->subscribe_v2 = dlsym(handle, "cuptiSubscribe_v2");
  *(void **)&cupti->unsubscribe = dlsym(handle, "cuptiUnsubscribe");
  *(void **)&cupti->enable = dlsym(handle, "cuptiEnableCallback");
  *(void **)&cupti->callback_name = dlsym(handle, "cuptiGetCallbackName");
  *(void **)&cupti->device_of_context = dlsym(handle, "cuptiGetDeviceId");
  *(void **)&cupti->result_text = dlsym(handle, "cuptiGetResultString");
  return cupti->get_version != NULL && (cupti->subscribe != NULL || cupti->subscribe_v2 != NULL) &&
         cupti->unsubscribe != NULL && cupti->enable != NULL && cupti->callback_name != NULL;
}

static void fail_old(struct search *search) {
  struct sc_cupti_failure *failure = search->failure;
  failure->note = SC_NOTE_OLD_CUPTI;
  (void)snprintf(failure->text, sizeof(failure->text), "%.400s, version %u", search->cupti->path,
                 search->cupti->version);
  (void)snprintf(failure->sentence, sizeof(failure->sentence),
                 "not tracing: %.400s is too old (cuptiGetVersion says %u, at least %d is needed: CUDA 12.0); set "
                 "SYNCCOUNT_CUPTI to a newer libcupti.so",
                 search->cupti->path, search->cupti->version, SC_CUPTI_MIN);
}

static void fail_taken(struct search *search, const char *holder) {
  struct sc_cupti_failure *failure = search->failure;
  failure->note = SC_NOTE_SLOT_TAKEN;
  (void)snprintf(failure->text, sizeof(failure->text), "%s", holder);
  (void)snprintf(
      failure->sentence, sizeof(failure->sentence),
      "not tracing: CUPTI has room for one subscriber and %s%s%s holds it; run the program without that profiler",
      holder[0] == '\0' ? "another tool" : "\"", holder, holder[0] == '\0' ? "" : "\"");
}

static void fail_result(struct search *search, int result) {
  struct sc_cupti_failure *failure = search->failure;
  char text[160];
  sc_cupti_result(search->cupti, result, text, sizeof(text));
  failure->note = SC_NOTE_DRIVER;
  (void)snprintf(failure->text, sizeof(failure->text), "cuptiSubscribe: %s", text);
  (void)snprintf(failure->sentence, sizeof(failure->sentence), "not tracing: cuptiSubscribe of %.300s failed with %s%s",
                 search->cupti->path, text,
                 result == RESULT_NOT_INITIALIZED
                     ? "; the driver is older than this CUPTI: set SYNCCOUNT_CUPTI to that of the driver's CUDA version"
                     : "; check that the driver works (nvidia-smi)");
}

static int subscribe(struct search *search, char *holder, size_t holder_size) {
  struct sc_cupti *cupti = search->cupti;
  if (cupti->subscribe_v2 == NULL)
    return cupti->subscribe(&cupti->subscriber, search->callback, NULL);
  struct subscriber_params params = {
    .size = sizeof(params), .name = "synccount", .old_name = holder, .old_name_size = holder_size
  };
  return cupti->subscribe_v2(&cupti->subscriber, search->callback, NULL, &params);
}

/* True when it is subscribed. */
static bool try_handle(struct search *search, void *handle, const char *name) {
  struct sc_cupti *cupti = search->cupti;
  char holder[128] = "";
  struct sc_cupti_failure first = *search->failure;
  bool is_first = !search->found;
  memset(cupti, 0, sizeof(*cupti));
  path_of(handle, name, cupti->path, sizeof(cupti->path));
  search->found = true;
  bool complete = bind_functions(cupti, handle);
  if (cupti->get_version != NULL && cupti->get_version(&cupti->version) != 0)
    cupti->version = 0;
  int result = -1;
  if (!complete || cupti->version < SC_CUPTI_MIN)
    fail_old(search);
  else if ((result = subscribe(search, holder, sizeof(holder) - 1)) == 0)
    return true;
  else if (result == RESULT_MULTIPLE_SUBSCRIBERS || result == RESULT_MAX_LIMIT)
    fail_taken(search, holder);
  else
    fail_result(search, result);
  cupti->subscriber = NULL;
  /* The first copy that was found is the one to complain about, unless a later one knows who holds the slot. */
  if (!is_first && search->failure->note != SC_NOTE_SLOT_TAKEN)
    *search->failure = first;
  return false;
}

/* Another copy may do where this one is too old or too new for the driver; a taken slot stays taken. */
static bool worth_going_on(const struct search *search) {
  return !search->found || search->failure->note != SC_NOTE_SLOT_TAKEN;
}

static bool try_path(struct search *search, const char *path, int flags) {
  if (!worth_going_on(search))
    return false;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
  return handle != NULL && try_handle(search, handle, path);
}

static const char *const sonames[] = { "libcupti.so.13", "libcupti.so.12" };

static const char *soname(const struct search *search, size_t i) {
  return sonames[search->twelve ? SC_COUNTOF(sonames) - 1 - i : i];
}

static bool try_folder(struct search *search, const char *folder) {
  for (size_t i = 0; i < SC_COUNTOF(sonames); i++) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, soname(search, i));
    if (n > 0 && (size_t)n < sizeof(path) && try_path(search, path, 0))
      return true;
  }
  return false;
}

static bool try_sonames(struct search *search, int flags) {
  for (size_t i = 0; i < SC_COUNTOF(sonames); i++)
    if (try_path(search, soname(search, i), flags))
      return true;
  return false;
}

static bool try_beside(struct search *search, const void *symbol) {
  Dl_info info;
  char folder[PATH_MAX];
  if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL)
    return false;
  (void)snprintf(folder, sizeof(folder), "%s", info.dli_fname);
  char *slash = strrchr(folder, '/');
  if (slash == NULL)
    return false;
  *slash = '\0';
  return try_folder(search, folder);
}

static bool try_toolkits(struct search *search) {
  const char *roots[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"),  "/usr/local/cuda",
                          "/opt/cuda",         "/usr/local/cuda-13", "/usr/local/cuda-12" };
  static const char *const below[] = { "lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib" };
  for (size_t i = 0; i < SC_COUNTOF(roots); i++)
    for (size_t k = 0; roots[i] != NULL && roots[i][0] != '\0' && k < SC_COUNTOF(below); k++) {
      char folder[PATH_MAX];
      int n = snprintf(folder, sizeof(folder), "%s/%s", roots[i], below[k]);
      if (n > 0 && (size_t)n < sizeof(folder) && try_folder(search, folder))
        return true;
    }
  return false;
}

/* ---- Python wheels: <site-packages>/nvidia/... beside what the process has loaded -------------------- */
struct roots {
  char *path[16];
  size_t count;
};

/* Called with the loader's lock held: collect, and open later. */
static int collect_root(struct dl_phdr_info *info, size_t size, void *user) {
  static const char *const marks[] = { "/nvidia/",     "/torch/", "/jaxlib/", "/jax_plugins/",
                                       "/tensorflow/", "/cupy/",  "/triton/" };
  struct roots *roots = user;
  (void)size;
  for (size_t i = 0; info->dlpi_name != NULL && i < SC_COUNTOF(marks); i++) {
    const char *mark = strstr(info->dlpi_name, marks[i]);
    if (mark == NULL || roots->count == SC_COUNTOF(roots->path))
      continue;
    size_t length = (size_t)(mark - info->dlpi_name);
    bool known = false;
    for (size_t k = 0; k < roots->count; k++)
      known = known || (strlen(roots->path[k]) == length && strncmp(roots->path[k], info->dlpi_name, length) == 0);
    if (!known && (roots->path[roots->count] = sc_strndup(info->dlpi_name, length)) != NULL)
      roots->count++;
  }
  return 0;
}

static bool try_wheels(struct search *search) {
  static const char *const below[] = { "nvidia/cu13/lib", "nvidia/cuda_cupti/lib" };
  struct roots roots = { .count = 0 };
  bool done = false;
  (void)dl_iterate_phdr(collect_root, &roots);
  for (size_t i = 0; i < roots.count; i++)
    for (size_t k = 0; !done && k < SC_COUNTOF(below); k++) {
      char folder[PATH_MAX];
      int n = snprintf(folder, sizeof(folder), "%s/%s", roots.path[i], below[k]);
      done = n > 0 && (size_t)n < sizeof(folder) && try_folder(search, folder);
    }
  for (size_t i = 0; i < roots.count; i++)
    free(roots.path[i]);
  return done;
}

static bool try_wanted(struct search *search, const char *wanted) {
  if (wanted == NULL)
    return false;
  void *handle = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
  if (handle != NULL)
    return try_handle(search, handle, wanted);
  const char *why = dlerror();
  (void)snprintf(search->bad_wanted, sizeof(search->bad_wanted), "; SYNCCOUNT_CUPTI did not load: %.200s",
                 why != NULL ? why : wanted);
  return false;
}

bool sc_cupti_bind(struct sc_cupti *cupti, const char *wanted, const void *simulated,
                   void (*callback)(void *, int, uint32_t, const void *), struct sc_cupti_failure *failure) {
  struct search search = { .cupti = cupti, .callback = callback, .failure = failure };
  search.twelve = dlopen("libcudart.so.12", RTLD_LAZY | RTLD_NOLOAD) != NULL &&
                  dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD) == NULL;
  if (try_beside(&search, simulated) || (!search.found && try_sonames(&search, RTLD_NOLOAD)))
    return true;
  if (search.found) /* the one copy that this process can have does not do */
    return false;
  if (try_wanted(&search, wanted) || try_sonames(&search, 0) || try_toolkits(&search) || try_wheels(&search))
    return true;
  if (!search.found) {
    failure->note = SC_NOTE_NO_CUPTI;
    (void)snprintf(failure->text, sizeof(failure->text),
                   "libcupti.so.13 and libcupti.so.12 were looked for in the process, on the loader's path, in the "
                   "CUDA toolkit's folders and in the Python wheels'%s",
                   search.bad_wanted);
    (void)snprintf(failure->sentence, sizeof(failure->sentence),
                   "not tracing: no libcupti.so.13 or .12 was found%s; install the CUDA toolkit's CUPTI (or pip "
                   "install nvidia-cuda-cupti), or set SYNCCOUNT_CUPTI to its path",
                   search.bad_wanted);
  }
  return false;
}
