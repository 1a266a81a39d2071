/* SPDX-License-Identifier: Apache-2.0
 * What is known of host, device and conditions, as people read it: a sentence where the bare value would not tell them
 * much, else "key: value". */
#include <math.h>
#include <string.h>

#include "report/content.h"

/* ---- sentences ----------------------------------------------------------------------------------- */

struct telling {
  const struct sc_findings *f;
  const struct sc_field *field;
  const char *words; /* of the table below */
  struct sc_buf *line;
};
/* True: the line says it; an empty one, because that of another fact does. False: "key: value" says all there is. */
typedef bool tell(const struct telling *t);

static double number_of(const struct sc_field *field)
{
  return field && field->kind == SC_FIELD_NUMBER ? field->number : NAN;
}

static const char *text_of(const struct sc_field *field)
{
  return field && field->kind == SC_FIELD_TEXT ? field->text : NULL;
}

static const struct sc_field *pcie(const struct telling *t, const char *key)
{
  return sc_findings_field(t->f, "host.pcie", key);
}

static const struct sc_field *condition(const struct telling *t, const char *key)
{
  return sc_findings_field(t->f, "conditions", key);
}

static bool told_of_link(const struct telling *t)
{
  return text_of(pcie(t, "link_speed")) && !isnan(number_of(pcie(t, "link_width")));
}

static bool tell_link(const struct telling *t)
{
  const char *speed = text_of(t->field), *most = text_of(pcie(t, "max_link_speed"));
  const double width = number_of(pcie(t, "link_width")), generation = number_of(pcie(t, "generation")),
               widest = number_of(pcie(t, "max_link_width"));

  if (!told_of_link(t))
    return false;
  sc_buf_puts(t->line, "PCIe: ");
  sc_put_prose(t->line, speed);
  sc_buf_printf(t->line, " x%.0f", width);
  if (!isnan(generation))
    sc_buf_printf(t->line, " (Gen%.0f)", generation);
  if (widest > width || (most && strcmp(most, speed) != 0)) {
    sc_buf_puts(t->line, "; the device could do ");
    sc_put_prose(t->line, most ? most : speed);
    sc_buf_printf(t->line, " x%.0f (an idle link may be slowed down)", isnan(widest) ? width : widest);
  }
  return true;
}

static bool told_of_generation(const struct telling *t) { return told_of_link(t) && !isnan(number_of(t->field)); }

/* Where the GPU hangs, and whether the process may run there. */
static bool tell_numa(const struct telling *t)
{
  const struct sc_field *allowed = condition(t, "gpu_numa_allowed");
  const char *cpus = text_of(condition(t, "gpu_numa_cpus"));
  const double node = number_of(t->field);

  if (isnan(node))
    return false;
  sc_buf_printf(t->line, "GPU on NUMA node %.0f", node);
  if (!allowed || allowed->kind != SC_FIELD_BOOL)
    return true;
  if (!allowed->boolean) {
    sc_buf_printf(t->line, "; this process may run on none of its CPUs: pin it there (numactl -N %.0f)", node);
  } else if (cpus) {
    sc_buf_puts(t->line, "; its CPUs: ");
    sc_put_prose(t->line, cpus);
  }
  return true;
}

static bool told_of_numa(const struct telling *t) { return !isnan(number_of(condition(t, "gpu_numa_node"))); }

static bool tell_quota(const struct telling *t)
{
  if (isnan(number_of(t->field)))
    return false;
  sc_buf_printf(t->line, "CPU quota of the control group: %.4g CPUs; a throttled process waits longer",
                t->field->number);
  return true;
}

static bool tell_governor(const struct telling *t)
{
  const char *governor = text_of(t->field);

  if (!governor)
    return false;
  sc_buf_puts(t->line, "CPU frequency governor: ");
  sc_put_prose(t->line, governor);
  if (strcmp(governor, "performance") != 0)
    sc_buf_puts(t->line, "; 'performance' wakes up faster");
  return true;
}

static bool tell_yes(const struct telling *t)
{
  if (t->field->kind != SC_FIELD_BOOL || !t->field->boolean)
    return false;
  sc_buf_puts(t->line, t->words);
  return true;
}

static bool tell_clock(const struct telling *t)
{
  if (isnan(number_of(t->field)))
    return false;
  sc_buf_printf(t->line, "%s: %.0f MHz", t->words, t->field->number / 1e6);
  return true;
}

static bool tell_played(const struct telling *t)
{
  char time[SC_TIME_TEXT];

  if (isnan(number_of(t->field)))
    return false;
  sc_buf_printf(t->line, "Simulated device: it plays a round trip of %s", sc_format_time_us(t->field->number, time));
  return true;
}

/* ---- the order, and who tells what ----------------------------------------------------------------- */

/* A fact that is not here follows those of its group that are, in the order in which they came. */
static const struct fact {
  const char *group, *key;
  tell *tell; /* NULL: "key: value" */
  const char *words;
} facts[] = {
    {"host", "cpu", NULL, NULL},
    {"host", "kernel", NULL, NULL},
    {"host", "virtualization", NULL, NULL},
    {"host", "container", NULL, NULL},
    {"host", "driver", NULL, NULL},
    {"host", "driver_kind", NULL, NULL},
    {"host", "cuda", NULL, NULL},
    {"host", "cuda_of_driver", NULL, NULL},
    {"host", "cupti", NULL, NULL},
    {"host.pcie", "bus_id", NULL, NULL},
    {"host.pcie", "link_speed", tell_link, NULL},
    {"host.pcie", "link_width", told_of_link, NULL},
    {"host.pcie", "generation", told_of_generation, NULL},
    {"host.pcie", "max_link_speed", told_of_link, NULL},
    {"host.pcie", "max_link_width", told_of_link, NULL},
    {"device", "name", NULL, NULL},
    {"device", "ordinal", NULL, NULL},
    {"device", "compute_capability", NULL, NULL},
    {"device", "total_memory_bytes", NULL, NULL},
    {"device", "multiprocessors", NULL, NULL},
    {"device", "l2_bytes", NULL, NULL},
    {"device", "cublas_version", NULL, NULL},
    {"device", "integrated", NULL, NULL},
    {"device", "sm_clock_max", tell_clock, "SM clock at most"},
    {"conditions", "gpu_numa_node", tell_numa, NULL},
    {"conditions", "gpu_numa_cpus", told_of_numa, NULL},
    {"conditions", "gpu_numa_allowed", told_of_numa, NULL},
    {"conditions", "cpus_allowed", NULL, NULL},
    {"conditions", "cgroup_cpu_quota", tell_quota, NULL},
    {"conditions", "governor", tell_governor, NULL},
    {"conditions", "smt", NULL, NULL},
    {"conditions", "wsl", tell_yes, "WSL: each submission crosses the hypervisor, round trips are long"},
    {"conditions", "mps", tell_yes, "MPS: a control daemon is running, the GPU may be shared"},
    {"conditions", "schedule_flag", NULL, NULL},
    {"conditions", "mig", tell_yes, "MIG: this is a part of a GPU"},
    {"conditions", "sm_clock_before", tell_clock, "SM clock before the run"},
    {"conditions", "sim_round_trip_us", tell_played, NULL},
};

/* "host.pcie" is in "host". */
static bool in_group(const char *group, const char *root)
{
  size_t n = strlen(root);

  return strncmp(group, root, n) == 0 && (group[n] == '\0' || group[n] == '.');
}

static bool has_place(const struct sc_field *field)
{
  for (size_t i = 0; i < SC_COUNTOF(facts); i++)
    if (strcmp(facts[i].group, field->group) == 0 && strcmp(facts[i].key, field->key) == 0)
      return true;
  return false;
}

/* ---- "key: value" ---------------------------------------------------------------------------------- */

/* "gpu_numa_node" -> "GPU NUMA node" */
static void put_key(struct sc_buf *line, const char *key)
{
  static const char *const spellings[] = {"CPU",  "CPUs", "GPU", "NUMA", "CUDA", "CUPTI",
                                          "PCIe", "SM",   "MIG", "MPS",  "WSL",  "SMT"};
  size_t from = line->len;

  sc_put_prose(line, key);
  while (from < line->len) {
    char *word = line->data + from;
    size_t n = strcspn(word, "_");

    for (size_t i = 0; i < SC_COUNTOF(spellings); i++)
      if (strlen(spellings[i]) == n && strncasecmp(word, spellings[i], n) == 0)
        memcpy(word, spellings[i], n);
    if (word[n] == '_')
      word[n] = ' ';
    from += n + 1;
  }
}

static bool is_bytes(const struct sc_field *field)
{
  size_t n = strlen(field->key);

  return field->kind == SC_FIELD_NUMBER && n > 6 && strcmp(field->key + n - 6, "_bytes") == 0;
}

/* Bytes as people say them; JSON has every one of them. */
static void put_number_field(struct sc_buf *line, const struct sc_field *field)
{
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = field->number;
  size_t unit = 0;

  if (isnan(value)) {
    sc_buf_puts(line, "not known");
  } else if (is_bytes(field)) {
    for (; fabs(value) >= 1024 && unit + 1 < SC_COUNTOF(units); unit++)
      value /= 1024;
    sc_buf_printf(line, "%.4g %s", value, units[unit]);
  } else {
    sc_buf_printf(line, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.4g", value);
  }
}

static void put_plain(struct sc_buf *line, const struct sc_field *field)
{
  if (strchr(field->group, '.')) {
    put_key(line, strchr(field->group, '.') + 1);
    sc_buf_puts(line, " ");
  }
  /* The device's name stands among the host's facts: "name" alone would not say whose. */
  put_key(line, strcmp(field->group, "device") == 0 && strcmp(field->key, "name") == 0 ? "device" : field->key);
  if (is_bytes(field) && !line->failed)
    line->len -= strlen("_bytes"); /* the value names the unit */
  sc_buf_puts(line, ": ");
  switch (field->kind) {
  case SC_FIELD_TEXT: sc_put_prose(line, field->text); break;
  case SC_FIELD_NUMBER: put_number_field(line, field); break;
  case SC_FIELD_BOOL: sc_buf_puts(line, field->boolean ? "yes" : "no"); break;
  case SC_FIELD_NULL: sc_buf_puts(line, "not known"); break;
  }
}

/* ---- the whole ------------------------------------------------------------------------------------- */

bool sc_content_has_facts(const struct sc_findings *f, const char *group)
{
  for (size_t i = 0; i < f->field_count; i++)
    if (in_group(f->fields[i].group, group))
      return true;
  return false;
}

static void put_fact(struct sc_doc *doc, const struct sc_findings *f, const struct fact *fact,
                     const struct sc_field *field)
{
  struct sc_buf line = {0};
  const struct telling telling = {.f = f, .field = field, .words = fact ? fact->words : NULL, .line = &line};

  if (!fact || !fact->tell || !fact->tell(&telling))
    put_plain(&line, field);
  else if (line.len == 0 && !line.failed)
    return; /* told by another fact's line */
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

void sc_content_facts(struct sc_doc *doc, const struct sc_findings *f, const char *group)
{
  for (size_t i = 0; i < SC_COUNTOF(facts); i++) {
    const struct sc_field *field =
        in_group(facts[i].group, group) ? sc_findings_field(f, facts[i].group, facts[i].key) : NULL;

    if (field)
      put_fact(doc, f, &facts[i], field);
  }
  for (size_t i = 0; i < f->field_count; i++)
    if (in_group(f->fields[i].group, group) && !has_place(&f->fields[i]))
      put_fact(doc, f, NULL, &f->fields[i]);
}
