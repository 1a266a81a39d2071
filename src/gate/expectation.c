/* SPDX-License-Identifier: Apache-2.0
 * One expectation: from text, checked, and back to text. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate.h"

static const char *const measure_names[] = {SC_MEASURE_WORDS};
_Static_assert(SC_COUNTOF(measure_names) == SC_GATE_MEASURE_COUNT, "SC_MEASURE_WORDS");
static const char *const variants[] = {SC_VARIANT_WORDS};
static const char *const levels[] = {SC_LEVEL_WORDS};
static const char *const classes[] = {SC_CLASS_WORDS};
_Static_assert(SC_COUNTOF(classes) == SC_CLASS_COUNT, "SC_CLASS_WORDS");

#define SELECTOR(name) {#name, offsetof(struct sc_gate_expectation, name)},
static const struct {
  const char *name;
  size_t offset;
} selectors[] = {SC_SELECTORS(SELECTOR)};
#undef SELECTOR

static char **selector_of(const struct sc_gate_expectation *e, size_t index)
{
  return (char **)((char *)e + selectors[index].offset);
}

/* "WHAT a, b and c", as an SC_ERR_USAGE. */
static enum sc_status words_error(struct sc_error *err, const char *what, const char *const *words, size_t count)
{
  struct sc_buf buf = {0};
  for (size_t i = 0; i < count; ++i)
    sc_buf_printf(&buf, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", words[i]);
  enum sc_status status =
      buf.failed ? sc_error_no_memory(err) : sc_error_set(err, SC_ERR_USAGE, "%s %s", what, buf.data);
  sc_buf_free(&buf);
  return status;
}

const char *sc_gate_measure_name(enum sc_gate_measure measure)
{
  return (unsigned)measure < SC_GATE_MEASURE_COUNT ? measure_names[measure] : "unknown";
}

bool sc_gate_measure_is_time(enum sc_gate_measure measure)
{
  return measure == SC_GATE_WAIT || measure == SC_GATE_FLOOR;
}

static void free_expectation(struct sc_gate_expectation *e)
{
  for (size_t i = 0; i < SC_COUNTOF(selectors); ++i)
    free(*selector_of(e, i));
  free(e->reason);
  free(e->text);
}

struct sc_gate_expectation *sc_gate_add(struct sc_gate *gate)
{
  struct sc_gate_expectation *e =
      sc_array_push(&gate->expectations, &gate->expectation_count, &gate->expectation_cap, sizeof *e);
  if (e) {
    e->cls = -1;
    e->low = e->high = NAN;
  }
  return e;
}

struct sc_gate_exception *sc_gate_add_exception(struct sc_gate *gate)
{
  return sc_array_push(&gate->exceptions, &gate->exception_count, &gate->exception_cap, sizeof *gate->exceptions);
}

void sc_gate_free(struct sc_gate *gate)
{
  for (size_t i = 0; i < gate->expectation_count; ++i)
    free_expectation(&gate->expectations[i]);
  for (size_t i = 0; i < gate->exception_count; ++i) {
    free(gate->exceptions[i].site);
    free(gate->exceptions[i].range);
    free(gate->exceptions[i].reason);
  }
  free(gate->expectations);
  free(gate->exceptions);
  free(gate->name);
  *gate = (struct sc_gate){0};
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool among(const char *word, const char *const *words, size_t count)
{
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(word, words[i]) == 0)
      return true;
  }
  return false;
}

/* All but the variant select in processes. */
static bool selects_in_process(const struct sc_gate_expectation *e)
{
  bool any = false;
  for (size_t i = 0; i < SC_COUNTOF(selectors); ++i)
    any |= *selector_of(e, i) && *selector_of(e, i) != e->variant;
  return any;
}

static enum sc_status unknown_word(const struct sc_gate_expectation *e, struct sc_error *err)
{
  if (e->variant && !among(e->variant, variants, SC_COUNTOF(variants)))
    return words_error(err, "the variants are", variants, SC_COUNTOF(variants));
  if (e->level && !among(e->level, levels, SC_COUNTOF(levels)))
    return words_error(err, "the levels are", levels, SC_COUNTOF(levels));
  return SC_OK;
}

/* NULL: selectors and measure go together. */
static const char *mismatch(const struct sc_gate_expectation *e)
{
  if (e->variant && selects_in_process(e))
    return "a variant is one of the instrumented layers: it takes no range, level, site, thread, rank or process";
  switch (e->measure) {
  case SC_GATE_PER_LAYER:
    if (e->range || e->level)
      return "syncs_per_layer takes the ranges of level layer: with a range say syncs_per_occurrence";
    if (e->variant && e->cls >= 0)
      return "syncs_per_layer of a variant is of all classes: say syncs or syncs_per_forward";
    break;
  case SC_GATE_PER_FORWARD:
  case SC_GATE_FLOOR:
    if (selects_in_process(e))
      return "this measure is of the instrumented layers alone, and takes no range, site, thread, rank or process";
    if (e->measure == SC_GATE_FLOOR && e->cls >= 0)
      return "a floor is of all syncs: it takes no class";
    break;
  case SC_GATE_PER_OCCURRENCE:
    if (!e->range && !e->level)
      return "syncs_per_occurrence needs a range or a level: range(layer*).syncs_per_occurrence";
    break;
  case SC_GATE_PER_STEP:
    if (e->range || e->level || e->variant)
      return "syncs_per_step is of whole steps: it takes no range, level or variant";
    break;
  case SC_GATE_WAIT:
    if (e->variant)
      return "wait is of programs: of a variant say floor";
    break;
  case SC_GATE_POLL_WAITS:
    if (e->site || e->thread || e->cls >= 0)
      return "poll_waits takes no site, thread or class";
    break;
  default: break;
  }
  if (e->expected && (e->measure != SC_GATE_PER_LAYER || selects_in_process(e) || e->cls >= 0))
    return "'expected' is known of syncs_per_layer of the instrumented layers alone";
  return NULL;
}

static bool is_count(double value) { return isnan(value) || (value >= 0 && value <= 1e15 && value == floor(value)); }

static const char *wrong_numbers(const struct sc_gate_expectation *e)
{
  if (e->expected)
    return NULL;
  if (!sc_gate_measure_is_time(e->measure) && (!is_count(e->low) || !is_count(e->high)))
    return "a count is compared with a whole number";
  if ((!isnan(e->low) && e->low < 0) || (!isnan(e->high) && e->high < 0))
    return "a time is not negative";
  if (e->compare == SC_GATE_BETWEEN && e->low > e->high)
    return "the first number of 'between' is larger than the second";
  return NULL;
}

/* ---- back to text ---------------------------------------------------------------------------- */

static void put_value(struct sc_buf *buf, const struct sc_gate_expectation *e, double value)
{
  char text[SC_TIME_TEXT];
  if (e->expected)
    sc_buf_puts(buf, "expected");
  else if (sc_gate_measure_is_time(e->measure))
    sc_buf_puts(buf, sc_format_time_us(value, text));
  else
    sc_buf_printf(buf, "%.0f", value);
}

static char *to_text(const struct sc_gate_expectation *e)
{
  struct sc_buf buf = {0};
  for (size_t i = 0; i < SC_COUNTOF(selectors); ++i) {
    const char *value = *selector_of(e, i);
    if (value)
      sc_buf_printf(&buf, value == e->variant ? "%.0s%s." : "%s(%s).", selectors[i].name, value);
  }
  if (e->cls >= 0)
    sc_buf_printf(&buf, "class(%s).", sc_class_name((enum sc_class)e->cls));
  sc_buf_puts(&buf, sc_gate_measure_name(e->measure));
  switch (e->compare) {
  case SC_GATE_EQUALS:
    sc_buf_puts(&buf, " == ");
    put_value(&buf, e, e->high);
    break;
  case SC_GATE_AT_MOST:
    sc_buf_puts(&buf, " <= ");
    put_value(&buf, e, e->high);
    break;
  case SC_GATE_AT_LEAST:
    sc_buf_puts(&buf, " >= ");
    put_value(&buf, e, e->low);
    break;
  case SC_GATE_BETWEEN:
    sc_buf_puts(&buf, " between ");
    put_value(&buf, e, e->low);
    sc_buf_puts(&buf, " and ");
    put_value(&buf, e, e->high);
    break;
  }
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data;
}

enum sc_status sc_gate_complete(struct sc_gate_expectation *e, struct sc_error *err)
{
  if (unknown_word(e, err) != SC_OK)
    return err->status;
  const char *wrong = mismatch(e);
  if (!wrong)
    wrong = wrong_numbers(e);
  if (wrong)
    return sc_error_set(err, SC_ERR_USAGE, "%s", wrong);
  free(e->text);
  e->text = to_text(e);
  return e->text ? SC_OK : sc_error_no_memory(err);
}

/* ---- from text ------------------------------------------------------------------------------- */

struct parser {
  const char *text, *at;
  struct sc_gate_expectation *e;
  struct sc_error *err;
};

static enum sc_status wrong(const struct parser *p, const char *what)
{
  return sc_error_set(p->err, SC_ERR_USAGE, "'%.200s': at character %zu: %s", p->text, (size_t)(p->at - p->text) + 1,
                      what);
}

static void skip_blanks(struct parser *p)
{
  while (*p->at == ' ' || *p->at == '\t')
    ++p->at;
}

static bool word_byte(char c) { return isalnum((unsigned char)c) || c == '_' || c == '-'; }

static enum sc_status select_class(struct sc_gate_expectation *e, const char *value, struct sc_error *err)
{
  if (e->cls >= 0)
    return sc_error_set(err, SC_ERR_USAGE, "class is selected twice");
  e->cls = sc_class_named(value);
  return e->cls >= 0 ? SC_OK : words_error(err, "the classes are", classes, SC_COUNTOF(classes));
}

enum sc_status sc_gate_select(struct sc_gate_expectation *e, const char *name, const char *value, struct sc_error *err)
{
  const char *names[SC_COUNTOF(selectors) + 1] = {0};
  if (strcmp(name, "class") == 0)
    return select_class(e, value, err);
  for (size_t i = 0; i < SC_COUNTOF(selectors); ++i) {
    names[i] = selectors[i].name;
    if (strcmp(selectors[i].name, name) != 0)
      continue;
    if (*selector_of(e, i))
      return sc_error_set(err, SC_ERR_USAGE, "%s is selected twice", name);
    *selector_of(e, i) = sc_strdup(value);
    return *selector_of(e, i) ? SC_OK : sc_error_no_memory(err);
  }
  names[SC_COUNTOF(selectors)] = "class";
  return words_error(err, "what can be selected is", names, SC_COUNTOF(names));
}

/* What sc_gate_select says, with its place. */
static enum sc_status select_here(struct parser *p, const char *name, const char *value)
{
  struct sc_error why = {0};
  enum sc_status status = sc_gate_select(p->e, name, value, &why);
  if (status == SC_ERR_USAGE)
    return wrong(p, why.message);
  return status == SC_OK ? SC_OK : sc_error_no_memory(p->err);
}

/* NAME(PATTERN). The pattern ends at the first ")." and may hold any other parenthesis. */
static enum sc_status take_call(struct parser *p, const char *name, size_t length)
{
  const char *start = p->at + 1, *end = strstr(start, ").");
  if (!end)
    return wrong(p, "')' and '.' are missing behind what is selected: range(layer*).syncs_per_occurrence");
  char *value = sc_strndup(start, (size_t)(end - start)), *selector = sc_strndup(name, length);
  enum sc_status status;
  if (!value || !selector)
    status = sc_error_no_memory(p->err);
  else if (!*value)
    status = wrong(p, "nothing stands in the parentheses");
  else
    status = select_here(p, selector, value);
  free(value);
  free(selector);
  p->at = end + 2;
  return status;
}

static enum sc_status take_variant(struct parser *p, const char *name, size_t length)
{
  char *variant = sc_strndup(name, length);
  struct sc_error why;
  enum sc_status status;
  if (!variant)
    status = sc_error_no_memory(p->err);
  else if (among(variant, variants, SC_COUNTOF(variants)))
    status = select_here(p, "variant", variant);
  else if (words_error(&why, "no variant has this name (for others say range(...), site(...)): there are", variants,
                       SC_COUNTOF(variants)) == SC_ERR_USAGE)
    status = wrong(p, why.message);
  else
    status = sc_error_no_memory(p->err);
  free(variant);
  return status;
}

static enum sc_status take_measure(struct parser *p, const char *name, size_t length)
{
  for (int i = 0; i < SC_GATE_MEASURE_COUNT; ++i) {
    if (strlen(measure_names[i]) == length && strncmp(measure_names[i], name, length) == 0) {
      p->e->measure = (enum sc_gate_measure)i;
      return SC_OK;
    }
  }
  struct sc_error why;
  p->at = name;
  if (words_error(&why, "what can be measured is", measure_names, SC_COUNTOF(measure_names)) != SC_ERR_USAGE)
    return sc_error_no_memory(p->err);
  return wrong(p, why.message);
}

/* Everything up to the comparison. */
static enum sc_status take_subject(struct parser *p)
{
  for (;;) {
    skip_blanks(p);
    const char *name = p->at;
    while (word_byte(*p->at))
      ++p->at;
    size_t length = (size_t)(p->at - name);
    enum sc_status status;
    if (length == 0)
      return wrong(p, "a name was expected here: sorted.syncs_per_layer == 1");
    if (*p->at == '(') {
      status = take_call(p, name, length);
    } else if (*p->at == '.') {
      status = take_variant(p, name, length);
      ++p->at;
    } else {
      return take_measure(p, name, length);
    }
    if (status != SC_OK)
      return status;
  }
}

static enum sc_status take_comparison(struct parser *p)
{
  static const struct {
    const char *text;
    enum sc_gate_compare compare;
  } known[] = {
      {"==", SC_GATE_EQUALS}, {"<=", SC_GATE_AT_MOST}, {">=", SC_GATE_AT_LEAST}, {"between ", SC_GATE_BETWEEN}};
  skip_blanks(p);
  for (size_t i = 0; i < SC_COUNTOF(known); ++i) {
    if (strncmp(p->at, known[i].text, strlen(known[i].text)) == 0) {
      p->e->compare = known[i].compare;
      p->at += strlen(known[i].text);
      return SC_OK;
    }
  }
  return wrong(p, "a comparison was expected here: ==, <=, >= or between A and B");
}

static enum sc_status take_number(struct parser *p, double *out)
{
  skip_blanks(p);
  size_t length = strcspn(p->at, " \t");
  char *text = sc_strndup(p->at, length);
  if (!text)
    return sc_error_no_memory(p->err);
  bool is_time = sc_gate_measure_is_time(p->e->measure);
  enum sc_status status = SC_OK;
  if (strcmp(text, "expected") == 0 && p->e->compare == SC_GATE_EQUALS)
    p->e->expected = true;
  else if (is_time ? !sc_parse_time_us(text, out) : !sc_parse_double(text, out))
    status = wrong(p, is_time ? "a time with its unit was expected here: 200us, 1.5ms" : "a number was expected here");
  free(text);
  p->at += length;
  skip_blanks(p);
  return status;
}

static enum sc_status take_numbers(struct parser *p)
{
  double first = NAN, second = NAN;
  enum sc_status status = take_number(p, &first);
  if (status == SC_OK && p->e->compare == SC_GATE_BETWEEN) {
    if (strncmp(p->at, "and ", 4) != 0)
      return wrong(p, "'and' was expected here: between 1 and 3");
    p->at += 4;
    status = take_number(p, &second);
  }
  if (status == SC_OK && *p->at)
    return wrong(p, "nothing more was expected here");
  if (p->e->compare != SC_GATE_AT_MOST)
    p->e->low = first;
  if (p->e->compare != SC_GATE_AT_LEAST)
    p->e->high = p->e->compare == SC_GATE_BETWEEN ? second : first;
  return status;
}

enum sc_status sc_gate_parse_comparison(struct sc_gate_expectation *e, const char *text, struct sc_error *err)
{
  struct parser p = {.text = text, .at = text, .e = e, .err = err};
  while (word_byte(*p.at))
    ++p.at;
  enum sc_status status = take_measure(&p, text, (size_t)(p.at - text));
  if (status == SC_OK)
    status = take_comparison(&p);
  return status == SC_OK ? take_numbers(&p) : status;
}

enum sc_status sc_gate_parse(struct sc_gate *gate, const char *text, struct sc_error *err)
{
  struct parser p = {.text = text, .at = text, .err = err};
  p.e = sc_gate_add(gate);
  if (!p.e)
    return sc_error_no_memory(err);
  enum sc_status status = take_subject(&p);
  if (status == SC_OK)
    status = take_comparison(&p);
  if (status == SC_OK)
    status = take_numbers(&p);
  if (status == SC_OK) {
    status = sc_gate_complete(p.e, err);
    if (status == SC_ERR_USAGE)
      sc_error_prefix(err, "'%.200s'", text);
  }
  if (status != SC_OK)
    free_expectation(&gate->expectations[--gate->expectation_count]);
  return status;
}
