/* SPDX-License-Identifier: Apache-2.0
 * Steps of the whole process, which marks delimit: from the end of one optimizer step (or of one forward, where no
 * optimizer steps) to the end of the next, with the syncs of all threads by time. What lies before the first mark and
 * after the last is no step. Steps that are ranges win over these: somebody named them. */
#include "analysis/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which marks ------------------------------------------------------------------------------ */

static bool is_series(const char *name, const char *word)
{
  size_t length = strlen(word);
  return strncmp(name, word, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

enum sc_mark sc_mark_of(const char *domain, const char *name, const char **about)
{
  static const struct {
    const char *word;
    enum sc_mark mark;
  } words[] = {{"step-end", SC_MARK_STEP_END},
               {"forward-end", SC_MARK_FORWARD_END},
               {"compiled", SC_MARK_COMPILED},
               {"profiler", SC_MARK_PROFILER}};
  static const char prefix[] = SC_DOMAIN_NAME ".";
  if (!domain || !name)
    return SC_MARK_OTHER;
  if (*domain == '\0' && strncmp(name, prefix, sizeof prefix - 1) == 0)
    name += sizeof prefix - 1;
  else if (strcmp(domain, SC_DOMAIN_NAME) != 0)
    return SC_MARK_OTHER;
  for (size_t i = 0; i < SC_COUNTOF(words); ++i) {
    if (is_series(name, words[i].word)) {
      const char *colon = name + strlen(words[i].word);
      if (about)
        *about = *colon ? colon + 1 : "";
      return words[i].mark;
    }
  }
  return SC_MARK_OTHER;
}

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int same_series_together(const void *left, const void *right)
{
  const struct sc_step_mark *a = left, *b = right;
  int order = compare(a->forward, b->forward);
  if (order == 0)
    order = compare(a->series, b->series);
  if (order == 0)
    order = compare(a->thread, b->thread);
  return order ? order : compare(a->time_ns, b->time_ns);
}

static bool same_series(const struct sc_step_mark *a, const struct sc_step_mark *b)
{
  return a->forward == b->forward && a->series == b->series && a->thread == b->thread;
}

/* Of several optimizers the first that steps twice delimits: the others step inside. Likewise of forwards. */
static bool comes_before(const struct sc_step_mark *a, size_t a_count, const struct sc_step_mark *b, size_t b_count)
{
  if (b_count == 0 || a->forward != b->forward)
    return b_count == 0;
  if ((a_count > 1) != (b_count > 1))
    return a_count > 1;
  return a_count > 1 ? a[1].time_ns < b[1].time_ns : a->time_ns < b->time_ns;
}

void sc_steps_choose(struct sc_step_mark *marks, size_t count, struct sc_step_ends *out)
{
  size_t best = 0, best_count = 0;
  *out = (struct sc_step_ends){0};
  if (count)
    qsort(marks, count, sizeof *marks, same_series_together);
  for (size_t i = 0, next; i < count; i = next) {
    for (next = i + 1; next < count && same_series(&marks[i], &marks[next]);)
      ++next;
    if (comes_before(&marks[i], next - i, &marks[best], best_count)) {
      best = i;
      best_count = next - i;
    }
  }
  out->marks = marks + best;
  out->count = best_count;
  out->source = best_count && marks[best].forward ? SC_STEPS_FORWARD : SC_STEPS_OPTIMIZER;
}

/* ---- counting --------------------------------------------------------------------------------- */

static bool is_within(const struct sc_analysis *a, uint64_t time_ns)
{
  for (size_t i = 0; i < a->window_count; ++i) {
    if (time_ns >= a->windows[i].start_ns && time_ns < a->windows[i].end_ns)
      return true;
  }
  return a->windows == NULL;
}

/* A step is counted if its end is: the part of a step before counting stopped is none. */
bool sc_analysis_steps(struct sc_analysis *a, const struct sc_step_ends *ends)
{
  struct marked_steps *steps = &a->marked;
  if (ends->count < 2)
    return true;
  steps->list = sc_calloc_array(ends->count - 1, sizeof *steps->list);
  if (!steps->list)
    return false;
  steps->count = ends->count - 1;
  steps->source = ends->source;
  steps->first_ns = ends->marks[0].time_ns;
  uint64_t begun = 0;
  for (size_t i = 0; i < steps->count; ++i) {
    struct marked_step *step = &steps->list[i];
    step->end_ns = ends->marks[i + 1].time_ns;
    if (!is_within(a, step->end_ns))
      step->state = STEP_OUTSIDE;
    else if (begun++ < a->warmup || a->from_ns == UINT64_MAX || step->end_ns < a->from_ns)
      step->state = STEP_WARMUP;
    else
      step->state = STEP_COUNTED;
  }
  return true;
}

uint64_t sc_steps_counted_from(const struct sc_analysis *a)
{
  for (size_t i = 0; i < a->marked.count; ++i) {
    if (a->marked.list[i].state == STEP_COUNTED)
      return i ? a->marked.list[i - 1].end_ns : a->marked.first_ns;
  }
  return UINT64_MAX;
}

/* The step that a call at this time belongs to; NULL: none. */
static struct marked_step *step_at(struct sc_analysis_thread *t, uint64_t time_ns)
{
  const struct marked_steps *steps = &t->analysis->marked;
  size_t at = t->marked_cursor; /* the first step that has not ended; a thread's calls come in order of time */
  if (t->outside || steps->count == 0 || time_ns < steps->first_ns)
    return NULL;
  while (at > 0 && steps->list[at - 1].end_ns > time_ns)
    --at;
  while (at < steps->count && steps->list[at].end_ns <= time_ns)
    ++at;
  t->marked_cursor = at;
  return at < steps->count && steps->list[at].state != STEP_OUTSIDE ? &steps->list[at] : NULL;
}

size_t sc_steps_index(struct sc_analysis_thread *t, uint64_t time_ns)
{
  const struct marked_step *step = step_at(t, time_ns);
  return step ? (size_t)(step - t->analysis->marked.list) : SIZE_MAX;
}

void sc_steps_sync(struct sc_analysis_thread *t, uint64_t time_ns)
{
  struct marked_step *step = step_at(t, time_ns);
  if (step)
    ++step->syncs;
}

bool sc_steps_in_counted(struct sc_analysis_thread *t, uint64_t time_ns)
{
  const struct marked_step *step = step_at(t, time_ns);
  return step && step->state == STEP_COUNTED && time_ns >= t->analysis->from_ns;
}

/* ---- the end ----------------------------------------------------------------------------------- */

static void put(struct sc_process *process, enum sc_step_source source, uint64_t count, uint64_t warmup,
                const struct sc_spread *spread)
{
  process->has_steps = true;
  process->step_source = source;
  process->steps = count;
  process->warmup = warmup;
  process->step_min = spread->min;
  process->step_max = spread->max;
  process->step_median = sc_spread_median(spread);
}

bool sc_steps_finish(struct sc_analysis *a, struct sc_process *process)
{
  struct sc_spread spread = {0};
  uint64_t count = 0, warmup = 0;
  bool ok = true;
  if (a->step_count) {
    put(process, SC_STEPS_RANGES, a->step_count, a->step_warmup, &a->steps);
    return true;
  }
  for (size_t i = 0; i < a->marked.count && ok; ++i) {
    const struct marked_step *step = &a->marked.list[i];
    count += step->state != STEP_OUTSIDE;
    warmup += step->state == STEP_WARMUP;
    if (step->state == STEP_COUNTED)
      ok = sc_spread_add(&spread, step->syncs);
  }
  if (count)
    put(process, a->marked.source, count, warmup, &spread);
  sc_spread_free(&spread);
  return ok;
}

const char *sc_step_source_name(enum sc_step_source source)
{
  static const char *const names[] = {"ranges", "optimizer", "forward"};
  return (unsigned)source < SC_COUNTOF(names) ? names[source] : "unknown";
}

/* ---- what marks say beside steps ---------------------------------------------------------------- */

bool sc_marks_take(struct sc_analysis *a, const struct sc_record_range *record)
{
  size_t length;
  const char *about = "", *domain = record->domain ? a->tree.text_of(a->tree.context, record->domain, &length) : "";
  const char *name = a->tree.text_of(a->tree.context, record->name, &length);
  enum sc_mark mark = sc_mark_of(domain, name, &about);
  if (mark == SC_MARK_PROFILER)
    a->profiler_started = true;
  if (mark != SC_MARK_COMPILED)
    return true;
  for (size_t i = 0; i < a->hidden_count; ++i) {
    if (strcmp(a->hidden[i], about) == 0)
      return true;
  }
  if (a->hidden_count == HIDDEN_MAX) {
    a->hidden_more = true;
    return true;
  }
  a->hidden[a->hidden_count] = sc_strdup(about);
  return a->hidden[a->hidden_count++] != NULL;
}

void sc_marks_free(struct sc_analysis *a)
{
  for (size_t i = 0; i < a->hidden_count; ++i)
    free(a->hidden[i]);
  free(a->marked.list);
}

static bool warn_hidden(const struct sc_analysis *a, const char *label, struct sc_findings *f)
{
  struct sc_buf names = {0};
  bool ok = true;
  for (size_t i = 0; i < a->hidden_count; ++i) {
    sc_buf_puts(&names, i ? ", " : "");
    sc_buf_put_printable(&names, a->hidden[i], strlen(a->hidden[i]));
  }
  if (a->hidden_more)
    sc_buf_puts(&names, ", and more");
  if (a->hidden_count)
    ok = !names.failed && sc_findings_warn(f,
                                           "%scompiled regions hide the modules inside them: %s. Their syncs are "
                                           "counted for the innermost module around the region.",
                                           label, names.data);
  sc_buf_free(&names);
  return ok;
}

bool sc_marks_warn(const struct sc_analysis *a, const char *label, struct sc_findings *f)
{
  return warn_hidden(a, label, f) &&
         (!a->profiler_started ||
          sc_findings_warn(f,
                           "%storch.profiler was started while this was counted: it saw no GPU activity, since CUPTI "
                           "has room for one subscriber. Run it without synccount for its own results.",
                           label));
}
