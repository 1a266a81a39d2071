/* SPDX-License-Identifier: Apache-2.0
 * The probe's arguments and environment, and what its end means. */
#include "cli/passes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/document.h"
#include "cli/session.h"
#include "trace/format.h"

#define BESIDE_LIMIT_S 20 /* CUDA takes seconds to start where there are many GPUs */

/* A list of strings that it owns; NULL-terminated when passed on. One failed allocation spoils it: check once, at the
 * end. */
struct strings {
  char **items;
  size_t count, capacity;
  bool failed;
};

static void add(struct strings *list, char *owned)
{
  char **slot = owned ? sc_array_push(&list->items, &list->count, &list->capacity, sizeof *list->items) : NULL;
  if (slot)
    *slot = owned;
  else {
    free(owned);
    list->failed = true;
  }
}

static void add_option(struct strings *list, const char *name, const char *value)
{
  add(list, sc_strdup(name));
  add(list, sc_strdup(value));
}

static void add_number(struct strings *list, const char *name, uint64_t value)
{
  add(list, sc_strdup(name));
  add(list, sc_asprintf("%" PRIu64, value));
}

static void add_real(struct strings *list, const char *name, const struct sc_config_real *value)
{
  if (!value->set) /* not given is not passed on */
    return;
  add(list, sc_strdup(name));
  add(list, sc_asprintf("%.17g", value->value));
}

/* Ends the list for execve. The NULL is no item: strings_free stops before it. */
static char **finish(struct strings *list)
{
  char **slot = sc_array_push(&list->items, &list->count, &list->capacity, sizeof *list->items);
  if (!slot)
    list->failed = true;
  return list->failed ? NULL : list->items;
}

static void strings_free(struct strings *list)
{
  for (size_t i = 0; i < list->count; ++i)
    free(list->items[i]);
  free(list->items);
}

static void add_numbers(struct strings *list, const char *name, const uint64_t *values, size_t count)
{
  struct sc_buf text = {0};
  for (size_t i = 0; i < count; ++i)
    sc_buf_printf(&text, "%s%" PRIu64, i ? "," : "", values[i]);
  add(list, sc_strdup(name));
  add(list, text.failed ? NULL : sc_strdup(text.data));
  sc_buf_free(&text);
}

static void add_words(struct strings *list, const char *name, const char *const *words, size_t count)
{
  struct sc_buf text = {0};
  for (size_t i = 0; i < count; ++i)
    sc_buf_printf(&text, "%s%s", i ? "," : "", words[i]);
  add(list, sc_strdup(name));
  add(list, text.failed ? NULL : sc_strdup(text.data));
  sc_buf_free(&text);
}

static const struct {
  const char *pass, *document, *title;
} kinds[] = {
    [PASS_TIMES] = {"times", SESSION_TIMES, "synccount: times, untraced"},
    [PASS_COUNTS] = {"counts", SESSION_COUNTS, "synccount: counts, traced"},
    [PASS_RULER] = {"ruler", SESSION_RULER, "synccount: round trip"},
    [PASS_RULER_BESIDE] = {"ruler", SESSION_RULER, NULL},
};

const char *passes_document(enum passes_kind kind) { return kinds[kind].document; }

double passes_sim_round_trip(const struct settings *settings)
{
  return isnan(settings->sim_round_trip_us) ? PASSES_SIM_ROUND_TRIP_US : settings->sim_round_trip_us;
}

static void add_plan(struct strings *list, const struct plan *plan)
{
  add_words(list, "--variants", plan->variants, plan->variants_count);
  add_numbers(list, "--experts", plan->experts, plan->experts_count);
  add_numbers(list, "--tokens", plan->tokens, plan->tokens_count);
  add_number(list, "--layers", plan->layers);
  add_number(list, "--model-layers", plan->model_layers);
  add_number(list, "--hidden", plan->hidden);
  add_number(list, "--intermediate", plan->intermediate);
  add_number(list, "--top-k", plan->top_k);
  add_option(list, "--dtype", sc_config_dtype_name(plan->dtype));
  add_option(list, "--activation", plan->activation);
  add_real(list, "--alpha", &plan->alpha);
  add_real(list, "--beta", &plan->beta);
  add_real(list, "--limit", &plan->limit);
  add_number(list, "--renormalize", plan->renormalize);
  add_option(list, "--routing", plan->routing);
  add_number(list, "--seed", plan->seed);
  add_number(list, "--forwards", plan->forwards);
  if (!plan_has_variant(plan, SETTINGS_FUSED))
    return;
  add_option(list, "--act-quant", plan->act_quant);
  add_option(list, "--nvfp4-path", plan->nvfp4_path);
  if (plan->w13_layout)
    add_option(list, "--w13-layout", plan->w13_layout);
  add_number(list, "--biases", plan->biases);
}

static char **arguments(const struct passes *passes, enum passes_kind kind, struct strings *list)
{
  const struct plan *plan = passes->plan;
  add(list, sc_strdup(passes->place->probe));
  add_option(list, "--pass", kinds[kind].pass);
  add(list, sc_strdup("--output"));
  add(list, folder_file(passes->folder, kinds[kind].document));
  add_number(list, "--device", passes->device->ordinal);
  if (!passes->settings->quiet && kind != PASS_RULER_BESIDE)
    add(list, sc_strdup("--progress"));
  if (kind != PASS_RULER && kind != PASS_RULER_BESIDE)
    add_plan(list, plan);
  if (kind == PASS_TIMES) /* the controls stand between the two */
    add_number(list, "--controls", plan_has_variant(plan, "masked") && plan_has_variant(plan, "sorted"));
  if (passes->device->simulated && kind == PASS_COUNTS) /* nothing there loads lazily, and a forward takes seconds */
    add_number(list, "--warmup", 0);
  if (passes->device->simulated && kind == PASS_RULER) { /* it shows that the ruler runs: its times mean nothing */
    add_number(list, "--samples", 48);
    add_number(list, "--blocks", 12);
  }
  if (kind == PASS_RULER_BESIDE) { /* well below a second */
    add_number(list, "--samples", 1200);
    add_number(list, "--blocks", 12);
  }
  return finish(list);
}

/* LD_PRELOAD without any libsynccount.so that the user has in it, and with ours when traced. */
static char *preload(const char *tracer)
{
  struct sc_buf text = {0};
  const char *old = getenv("LD_PRELOAD");
  for (const char *at = old; at && *at;) {
    at += strspn(at, ": ");
    size_t length = strcspn(at, ": ");
    static const char ours[] = "libsynccount.so";
    bool is_ours = length >= sizeof ours - 1 && strncmp(at + length - (sizeof ours - 1), ours, sizeof ours - 1) == 0;
    if (length && !is_ours)
      sc_buf_printf(&text, "%s%.*s", text.len ? ":" : "", (int)length, at);
    at += length;
  }
  if (tracer)
    sc_buf_printf(&text, "%s%s", text.len ? ":" : "", tracer);
  char *entry = text.failed ? NULL : text.len ? sc_asprintf("LD_PRELOAD=%s", text.data) : sc_strdup("LD_PRELOAD");
  sc_buf_free(&text);
  return entry;
}

static const char *const *environment(const struct passes *passes, bool traced, struct strings *list)
{
  /* Another tool's injection would trace the untraced pass, or keep ours out of the traced one. */
  add(list, sc_strdup("CUDA_INJECTION64_PATH"));
  add(list, sc_strdup("NVTX_INJECTION64_PATH"));
  add(list, preload(traced ? passes->place->tracer : NULL));
  add(list, sc_strdup("SYNCCOUNT_DORMANT"));
  add(list, sc_asprintf("SYNCCOUNT_OUTPUT=%s", passes->folder->path));
  add(list, sc_strdup("SYNCCOUNT_STACKS=none")); /* the probe's ranges say where its syncs come from */
  add(list, sc_strdup("SYNCCOUNT_QUIET=0")); /* we take its stderr, and show it when something went wrong */
  if (passes->device->simulated) {
    const char *old = getenv("LD_LIBRARY_PATH");
    add(list, sc_asprintf("LD_LIBRARY_PATH=%s%s%s", passes->place->simcuda, old && *old ? ":" : "", old ? old : ""));
    add(list, sc_asprintf("SIMCUDA_ROUND_TRIP=%.0fns", passes_sim_round_trip(passes->settings) * 1e3));
    if (passes->device->has_memory && !getenv("SIMCUDA_MEMORY"))
      add(list, sc_asprintf("SIMCUDA_MEMORY=%" PRIu64, passes->device->memory_bytes));
  }
  return (const char *const *)finish(list);
}

#define PROBE_PREFIX "synccount-probe: "

/* The last line that the probe wrote itself, without its end; the tracer's lines begin with "synccount: ". "" if none.
 */
static void last_words(const struct sc_buf *lines, bool of_tracer, struct sc_buf *out)
{
  for (const char *line = lines->data; line && *line;) {
    size_t length = strcspn(line, "\n");
    if (length && sc_starts_with(line, "synccount: ") == of_tracer) {
      out->len = 0;
      sc_buf_put_printable(out, line, length);
    }
    line += length + (line[length] == '\n');
  }
}

/* What the probe says behind its name; NULL if the line does not begin with that. */
static const char *behind_name(const char *line)
{
  return sc_starts_with(line, PROBE_PREFIX) ? line + strlen(PROBE_PREFIX) : NULL;
}

/* Whether the error ends with these words, so that saying them before it tells nothing more. */
static bool is_told(const char *line, const struct sc_error *err)
{
  const char *words = behind_name(line);
  if (!words)
    words = line;
  size_t length = strlen(words), whole = strlen(err->message);
  return length <= whole && strcmp(err->message + whole - length, words) == 0;
}

/* The tracer's last line names a file that mostly goes with our folder, and that is no report of anything. */
static bool is_of_our_trace(const char *line) { return sc_starts_with(line, "synccount: trace in "); }

/* What was said before the error, but for what the error says itself. */
static void print_lines(const struct child_result *result, const struct sc_error *err)
{
  struct sc_buf printable = {0};
  for (const char *line = result->lines.data; line && *line;) {
    size_t length = strcspn(line, "\n");
    printable.len = 0;
    sc_buf_put_printable(&printable, line, length);
    if (length && !printable.failed && !is_told(printable.data, err) && !is_of_our_trace(printable.data))
      cli_say("probe: %s", printable.data);
    line += length + (line[length] == '\n');
  }
  sc_buf_free(&printable);
}

/* Why it ended with a status of its own. What it refuses was the user's to give, so its words are the whole error;
 * status 2 of another program in its place may mean anything. */
static enum sc_status refuse(enum passes_kind kind, int status, const struct sc_buf *words, struct sc_error *err)
{
  const char *said = words->len ? words->data : "it said nothing", *own = behind_name(said);
  if (status == 2 && own)
    return sc_error_set(err, SC_ERR_USAGE, "%s", own);
  return sc_error_set(err, status == 2 ? SC_ERR_USAGE : SC_ERR_MEASURE,
                      "the probe could not run pass %s (exit status %d): %.700s", kinds[kind].pass, status,
                      own ? own : said);
}

static enum sc_status judge(const struct passes *passes, enum passes_kind kind, const struct child_result *result,
                            struct sc_error *err)
{
  char *path = folder_file(passes->folder, kinds[kind].document);
  struct sc_buf words = {0};
  enum sc_status status = SC_OK;
  if (!path)
    return sc_error_no_memory(err);
  last_words(&result->lines, false, &words);
  if (result->signal)
    status = sc_error_set(
        err, SC_ERR_MEASURE,
        "the probe was ended by signal %d (%s) in pass %s. Run it again; if it happens each time, report it with "
        "the lines above",
        result->signal, strsignal(result->signal), kinds[kind].pass);
  else if (result->status != 0 && result->status != 1) /* 1: a verification failed, which the document tells */
    status = refuse(kind, result->status, &words, err);
  else if (access(path, R_OK) != 0)
    status = sc_error_set(err, SC_ERR_MEASURE, "the probe ended without its document %s", path);
  sc_buf_free(&words);
  free(path);
  return status;
}

static enum sc_status traced_something(const struct passes *passes, const struct child_result *result,
                                       struct sc_error *err)
{
  char **names;
  size_t count;
  enum sc_status status = folder_names(passes->folder->path, "*" SC_TRACE_SUFFIX, &names, &count, err);
  if (status != SC_OK)
    return status;
  folder_free_names(names, count);
  if (count)
    return SC_OK;
  struct sc_buf words = {0};
  last_words(&result->lines, true, &words);
  status = sc_error_set(err, SC_ERR_MEASURE, "the traced probe left no trace in %s: %.600s", passes->folder->path,
                        words.len ? words.data : "the tracer said nothing. Is LD_PRELOAD allowed here?");
  sc_buf_free(&words);
  return status;
}

enum sc_status passes_run(const struct passes *passes, enum passes_kind kind, struct sc_error *err)
{
  struct strings argv = {0}, env = {0};
  struct child_result result = {0};
  enum sc_status status = SC_OK;
  const struct child child = {.argv = arguments(passes, kind, &argv),
                              .environment = environment(passes, kind == PASS_COUNTS, &env),
                              .title = passes->settings->quiet ? NULL : kinds[kind].title,
                              .limit_s = kind == PASS_RULER_BESIDE ? BESIDE_LIMIT_S : 0};
  if (!child.argv || !child.environment)
    status = sc_error_no_memory(err);
  else
    status = child_run(&child, &result, err);
  if (status == SC_OK) {
    status = judge(passes, kind, &result, err);
    if (status == SC_OK && kind == PASS_COUNTS)
      status = traced_something(passes, &result, err);
    if (status != SC_OK && kind != PASS_RULER_BESIDE)
      print_lines(&result, err);
  }
  sc_buf_free(&result.lines);
  strings_free(&argv);
  strings_free(&env);
  return status;
}
