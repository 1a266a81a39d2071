/* SPDX-License-Identifier: Apache-2.0
 * processes[] of the JSON report. */
#include <math.h>
#include <stdlib.h>

#include "report/json_value.h"

static json_t *thread_value(const struct sc_thread_findings *t, bool simulated, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "tid", sc_json_count(t->tid), ok);
  sc_json_put(object, "name", sc_json_text(t->name), ok);
  sc_json_put(object, "launches", sc_json_count(t->launches), ok);
  sc_json_put(object, "syncs", sc_json_count(t->syncs), ok);
  sc_json_put(object, "wait_us", sc_json_us(simulated ? NAN : t->wait_us), ok);
  sc_json_put(object, "poll_waits", sc_json_count(t->poll_waits), ok);
  sc_json_put(object, "d2h_copies", sc_json_count(t->d2h_copies), ok);
  sc_json_put(object, "host_functions", sc_json_count(t->host_functions), ok);
  return object;
}

static json_t *range_value(const struct sc_range_findings *r, bool simulated, bool *ok)
{
  json_t *object = json_object(), *syncs = json_object();
  bool finished = !isnan(r->median);

  sc_json_put(object, "path", sc_json_text(r->path), ok);
  sc_json_put(object, "name", sc_json_text(r->name), ok);
  sc_json_put(object, "domain", sc_json_text(r->domain), ok);
  sc_json_put(object, "level", sc_json_text(r->level), ok);
  sc_json_put(object, "depth", sc_json_count(r->depth), ok);
  sc_json_put(object, "occurrences", sc_json_count(r->occurrences), ok);
  sc_json_put(object, "unfinished", sc_json_count(r->unfinished), ok);
  sc_json_put(object, "spanning", json_boolean(r->spanning), ok);
  sc_json_put(syncs, "total", sc_json_count(r->total.syncs), ok);
  sc_json_put(syncs, "self", sc_json_count(r->self.syncs), ok);
  sc_json_put(syncs, "min", finished ? sc_json_count(r->min) : json_null(), ok);
  sc_json_put(syncs, "median", sc_json_number(r->median), ok);
  sc_json_put(syncs, "max", finished ? sc_json_count(r->max) : json_null(), ok);
  sc_json_put(object, "syncs", syncs, ok);
  sc_json_put(object, "by_class", sc_json_by_class(&r->total, ok), ok);
  sc_json_put(object, "wait_us", sc_json_us(simulated ? NAN : (double)r->total.wait_ns / 1000.0), ok);
  sc_json_put(object, "launches", sc_json_count(r->total.launches), ok);
  sc_json_put(object, "submissions", sc_json_count(r->total.submissions), ok);
  sc_json_put(object, "poll_waits", sc_json_count(r->total.poll_waits), ok);
  sc_json_put(object, "uncertain", sc_json_count(r->total.uncertain), ok);
  return object;
}

static json_t *frames_value(const struct sc_frame *frames, size_t count, bool *ok)
{
  json_t *array = json_array();

  for (size_t i = 0; i < count; i++) {
    json_t *object = json_object();

    sc_json_put(object, "file", sc_json_text(frames[i].file), ok);
    sc_json_put(object, "line", frames[i].line ? sc_json_count(frames[i].line) : json_null(), ok);
    sc_json_put(object, "function", sc_json_text(frames[i].function), ok);
    sc_json_push(array, object, ok);
  }
  return array;
}

/* Only imports can tell: absent from all other reports. */
static void put_drain(json_t *object, double p50_us, double total_us, bool *ok)
{
  if (isnan(p50_us))
    return;
  sc_json_put(object, "drain_gap_p50_us", sc_json_us(p50_us), ok);
  sc_json_put(object, "drain_gap_total_us", sc_json_us(total_us), ok);
}

static json_t *site_value(const struct sc_site *s, bool simulated, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "id", sc_json_text(s->id), ok);
  sc_json_put(object, "kind", json_string(sc_site_kind_name(s->kind)), ok);
  sc_json_put(object, "class", s->kind == SC_SITE_SYNC ? json_string(sc_class_name(s->cls)) : json_null(), ok);
  sc_json_put(object, "api", sc_json_text(s->api), ok);
  sc_json_put(object, "direction", sc_json_text(s->direction), ok);
  /* A synchronise moves no bytes: none is not 0. */
  sc_json_put(object, "bytes", s->direction ? sc_json_count(s->bytes) : json_null(), ok);
  sc_json_put(object, "memory", sc_json_text(s->memory), ok);
  sc_json_put(object, "pattern", sc_json_text(s->pattern), ok);
  sc_json_put(object, "remedy", sc_json_text(s->remedy), ok);
  sc_json_put(object, "count", sc_json_count(s->count), ok);
  sc_json_put(object, "read_backs", sc_json_count(s->read_backs), ok);
  sc_json_put(object, "blocking_uploads", sc_json_count(s->blocking_uploads), ok);
  sc_json_put(object, "per_step", sc_json_number(s->per_step), ok);
  sc_json_put(object, "wait_p50_us", sc_json_us(simulated ? NAN : s->wait_p50_us), ok);
  sc_json_put(object, "wait_total_us", sc_json_us(simulated ? NAN : s->wait_total_us), ok);
  put_drain(object, simulated ? NAN : s->drain_gap_p50_us, s->drain_gap_total_us, ok);
  sc_json_put(object, "python", frames_value(s->python, s->python_count, ok), ok);
  sc_json_put(object, "native", frames_value(s->native, s->native_count, ok), ok);
  sc_json_put(object, "range", sc_json_text(s->range), ok);
  return object;
}

static json_t *steps_value(const struct sc_process *p, bool *ok)
{
  json_t *object;

  if (!p->has_steps)
    return json_null();
  object = json_object();
  sc_json_put(object, "source", sc_json_text(sc_step_source_name(p->step_source)), ok);
  sc_json_put(object, "count", sc_json_count(p->steps), ok);
  sc_json_put(object, "warmup", sc_json_count(p->warmup), ok);
  sc_json_put(object, "min", isnan(p->step_median) ? json_null() : sc_json_count(p->step_min), ok);
  sc_json_put(object, "median", sc_json_number(p->step_median), ok);
  sc_json_put(object, "max", isnan(p->step_median) ? json_null() : sc_json_count(p->step_max), ok);
  return object;
}

/* Rates as measured in the process when it ended; the totals follow from what was recorded. */
static json_t *tracer_value(const struct sc_process *p, bool simulated, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "start_us", sc_json_us(simulated ? NAN : p->start_cost_us), ok);
  sc_json_put(object, "call_us", sc_json_us(simulated ? NAN : p->call_cost_us), ok);
  sc_json_put(object, "launch_us", sc_json_us(simulated ? NAN : p->launch_cost_us), ok);
  sc_json_put(object, "calls_us", sc_json_us(simulated ? NAN : sc_process_tracer_cost(p, NULL)), ok);
  return object;
}

static json_t *allowed_value(const struct sc_process *p, bool *ok)
{
  json_t *array = json_array();
  struct sc_allowed *list = NULL;
  size_t count = 0;

  *ok &= sc_process_allowed(p, &list, &count);
  for (size_t i = 0; i < count; i++) {
    json_t *object = json_object();

    sc_json_put(object, "reason", sc_json_text(list[i].reason), ok);
    sc_json_put(object, "occurrences", sc_json_count(list[i].occurrences), ok);
    sc_json_put(object, "syncs", sc_json_count(list[i].syncs), ok);
    sc_json_push(array, object, ok);
  }
  free(list);
  return array;
}

static json_t *stacks_value(const struct sc_process *p, bool simulated, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "taken", sc_json_count(p->stacks), ok);
  sc_json_put(object, "walked", sc_json_count(p->stack_walks), ok);
  sc_json_put(object, "missing", sc_json_count(p->stacks_missing), ok);
  sc_json_put(object, "total_us", sc_json_us(simulated ? NAN : (double)p->stack_ns / 1000.0), ok);
  sc_json_put(object, "walked_us", sc_json_us(simulated ? NAN : (double)p->stack_walk_ns / 1000.0), ok);
  sc_json_put(object, "longest_us", sc_json_us(simulated ? NAN : (double)p->stack_longest_ns / 1000.0), ok);
  return object;
}

static json_t *floor_value(const struct sc_findings *f, const struct sc_process *p, bool *ok)
{
  struct sc_process_floor floor;
  json_t *object;

  if (!sc_process_floor(f, p, &floor))
    return json_null();
  object = json_object();
  sc_json_put(object, "round_trips", sc_json_count(floor.round_trips), ok);
  sc_json_put(object, "round_trip_us", sc_json_us(floor.round_trip_us), ok);
  sc_json_put(object, "total_us", sc_json_us(floor.total_us), ok);
  sc_json_put(object, "per_step_us", sc_json_us(floor.per_step_us), ok);
  return object;
}

static json_t *syncs_value(const struct sc_process *p, bool simulated, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "total", sc_json_count(p->counts.syncs), ok);
  sc_json_put(object, "without_detail", sc_json_count(p->without_detail.syncs), ok);
  sc_json_put_counts(object, &p->counts, ok);
  sc_json_put(object, "wait_us", sc_json_us(simulated ? NAN : (double)p->counts.wait_ns / 1000.0), ok);
  put_drain(object, simulated ? NAN : p->drain_gap_p50_us, p->drain_gap_total_us, ok);
  if (!simulated && !isnan(p->drain_gap_p50_us))
    sc_json_put(object, "drain_gaps", sc_json_count(p->drain_gaps), ok);
  sc_json_put(object, "queue_waits", sc_json_count(p->queue_waits), ok);
  sc_json_put(object, "queue_wait_us", sc_json_us(simulated ? NAN : (double)p->queue_wait_ns / 1000.0), ok);
  return object;
}

static json_t *losses_value(const struct sc_process *p, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "records", sc_json_count(p->lost_records), ok);
  sc_json_put(object, "chunks", sc_json_count(p->lost_chunks), ok);
  sc_json_put(object, "totals_complete", json_boolean(sc_process_is_whole(p)), ok);
  return object;
}

/* Ranks come as text from the environment: a number where they are one. */
json_t *sc_json_rank(const char *rank)
{
  uint64_t number;

  return rank && sc_parse_u64(rank, &number) ? sc_json_count(number) : sc_json_text(rank);
}

json_t *sc_json_process(const struct sc_findings *f, const struct sc_process *p, bool simulated, bool *ok)
{
  json_t *object = json_object(), *threads = json_array(), *ranges = json_array(), *sites = json_array();

  for (size_t i = 0; i < p->thread_count; i++)
    sc_json_push(threads, thread_value(&p->threads[i], simulated, ok), ok);
  for (size_t i = 0; i < p->range_count; i++)
    sc_json_push(ranges, range_value(&p->ranges[i], simulated, ok), ok);
  for (size_t i = 0; i < p->site_count; i++)
    sc_json_push(sites, site_value(&p->sites[i], simulated, ok), ok);
  sc_json_put(object, "host", sc_json_text(p->host), ok);
  sc_json_put(object, "pid", sc_json_count(p->pid), ok);
  sc_json_put(object, "rank", sc_json_rank(p->rank), ok);
  sc_json_put(object, "local_rank", sc_json_rank(p->local_rank), ok);
  sc_json_put(object, "command", sc_json_text(p->command), ok);
  sc_json_put(object, "cwd", sc_json_text(p->cwd), ok);
  sc_json_put(object, "wall_us", sc_json_us(simulated ? NAN : p->wall_us), ok);
  sc_json_put(object, "attached_late", json_boolean(p->attached_late), ok);
  sc_json_put(object, "ended_cleanly", json_boolean(p->ended_cleanly), ok);
  sc_json_put(object, "simulated", json_boolean(simulated), ok);
  sc_json_put(object, "threads", threads, ok);
  sc_json_put(object, "ranges", ranges, ok);
  sc_json_put(object, "sites", sites, ok);
  sc_json_put(object, "measured", json_boolean(!p->unmeasured), ok);
  sc_json_put(object, "allowed", allowed_value(p, ok), ok);
  sc_json_put(object, "tracer", tracer_value(p, simulated, ok), ok);
  sc_json_put(object, "stacks", stacks_value(p, simulated, ok), ok);
  sc_json_put(object, "floor", floor_value(f, p, ok), ok);
  sc_json_put(object, "losses", losses_value(p, ok), ok);
  sc_json_put(object, "steps", steps_value(p, ok), ok);
  sc_json_put(object, "syncs", p->unmeasured ? json_null() : syncs_value(p, simulated, ok), ok);
  return object;
}
