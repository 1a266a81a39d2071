/* SPDX-License-Identifier: Apache-2.0
 * Values of a file into a struct, checked one by one. */
#include "config/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

#define MAX_FILE_BYTES (1u << 20)

static enum sc_status out_of_memory(const struct target *target)
{
  return sc_error_set(target->err, SC_ERR_NOMEM, "%s: out of memory", target->name);
}

static const struct field *skip_ends(const struct field *field)
{
  while (!field->key && field->section)
    field = field->section;
  return field->key ? field : NULL;
}

static const struct field *first_field(const struct field *fields) { return skip_ends(fields); }
static const struct field *next_field(const struct field *field) { return skip_ends(field + 1); }

/* "softmax or sigmoid", "a, b or c", from words[first]. */
static void list_words(const char *const *words, size_t first, struct sc_buf *buf)
{
  for (size_t i = first; words[i]; ++i) {
    if (i > first)
      sc_buf_puts(buf, words[i + 1] ? ", " : " or ");
    sc_buf_puts(buf, words[i]);
  }
}

static bool is_null(const struct node *node)
{
  return node->kind == NODE_SCALAR && !node->quoted &&
         (node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

static const char *what_it_is(const struct node *node)
{
  if (node->kind == NODE_MAPPING)
    return "a section";
  if (node->kind == NODE_SEQUENCE)
    return node->first ? "a list" : "an empty list";
  return is_null(node) ? "nothing" : !node->quoted ? node->text : *node->text ? "quoted text" : "an empty text";
}

static enum sc_status wrong_type(const struct target *target, const struct node *node, const char *key,
                                 const char *wanted)
{
  return node_error(node, target->name, target->err, "'%s' must be %s, not %.80s", key, wanted, what_it_is(node));
}

static enum sc_status read_number(const struct target *target, const struct field *field, const struct node *node,
                                  uint64_t *out)
{
  char wanted[96];
  snprintf(wanted, sizeof wanted, "a whole number from %llu to %llu", (unsigned long long)field->min,
           (unsigned long long)field->max);
  uint64_t value;
  if (node->kind != NODE_SCALAR || node->quoted || !sc_parse_u64(node->text, &value) || value < field->min ||
      value > field->max)
    return wrong_type(target, node, field->key, wanted);
  *out = value;
  return SC_OK;
}

static enum sc_status read_real(const struct target *target, const struct field *field, const struct node *node)
{
  struct sc_config_real real = {0};
  if (!is_null(node)) {
    if (node->kind != NODE_SCALAR || node->quoted || !sc_parse_double(node->text, &real.value))
      return wrong_type(target, node, field->key, "a number or null");
    real.set = true;
  }
  memcpy(target->base + field->offset, &real, sizeof real);
  return SC_OK;
}

static enum sc_status read_text(const struct target *target, const struct field *field, const struct node *node)
{
  if (node->kind != NODE_SCALAR || is_null(node) || !node->text[0])
    return wrong_type(target, node, field->key, "text");
  char *text = sc_strdup(node->text);
  if (!text)
    return out_of_memory(target);
  memcpy(target->base + field->offset, &text, sizeof text);
  return SC_OK;
}

/* The index of the node's text in the field's words. */
static enum sc_status read_word(const struct target *target, const struct field *field, const struct node *node,
                                size_t *index)
{
  for (size_t i = field->min; node->kind == NODE_SCALAR && field->words[i]; ++i) {
    if (strcmp(node->text, field->words[i]) == 0) {
      *index = i;
      return SC_OK;
    }
  }
  struct sc_buf wanted = {0};
  list_words(field->words, field->min, &wanted);
  enum sc_status status = wanted.failed ? out_of_memory(target) : wrong_type(target, node, field->key, wanted.data);
  sc_buf_free(&wanted);
  return status;
}

static enum sc_status read_enum(const struct target *target, const struct field *field, const struct node *node)
{
  size_t index;
  enum sc_status status = read_word(target, field, node, &index);
  if (status != SC_OK)
    return status;
  unsigned value = (unsigned)index; /* every enum of the structs has this size: their owners assert it */
  memcpy(target->base + field->offset, &value, sizeof value);
  return SC_OK;
}

static enum sc_status read_name(const struct target *target, const struct field *field, const struct node *node)
{
  size_t index;
  enum sc_status status = read_word(target, field, node, &index);
  return status == SC_OK ? read_text(target, field, node) : status;
}

static enum sc_status read_bool(const struct target *target, const struct field *field, const struct node *node)
{
  bool yes = node->kind == NODE_SCALAR && !node->quoted && strcmp(node->text, "true") == 0;
  if (!yes && (node->kind != NODE_SCALAR || node->quoted || strcmp(node->text, "false") != 0))
    return wrong_type(target, node, field->key, "true or false");
  memcpy(target->base + field->offset, &yes, sizeof yes);
  return SC_OK;
}

/* A list of at least one element. What was stored before a failure is freed with the whole configuration. */
static enum sc_status read_list(const struct target *target, const struct field *field, const struct node *node)
{
  bool names = field->kind == FIELD_NAMES;
  if (node->kind != NODE_SEQUENCE || node->count == 0)
    return wrong_type(target, node, field->key,
                      names ? "a list of names, like [masked, sorted]" : "a list of numbers, like [4, 8, 16]");
  void *list = sc_calloc_array(node->count, names ? sizeof(char *) : sizeof(uint64_t));
  if (!list)
    return out_of_memory(target);
  memcpy(target->base + field->offset, &list, sizeof list);
  memcpy(target->base + field->extra, &node->count, sizeof node->count);
  size_t i = 0;
  for (const struct node *item = node->first; item; item = item->next, ++i) {
    size_t index = 0;
    enum sc_status status =
        names ? read_word(target, field, item, &index) : read_number(target, field, item, (uint64_t *)list + i);
    if (status != SC_OK)
      return status;
    if (names && !(((char **)list)[i] = sc_strdup(field->words[index])))
      return out_of_memory(target);
  }
  return SC_OK;
}

static enum sc_status read_texts(const struct target *target, const struct field *field, const struct node *node)
{
  if (node->kind != NODE_SEQUENCE || node->count == 0)
    return wrong_type(target, node, field->key, "a list of texts, like [one, two]");
  char **list = sc_calloc_array(node->count, sizeof *list);
  if (!list)
    return out_of_memory(target);
  memcpy(target->base + field->offset, &list, sizeof list);
  memcpy(target->base + field->extra, &node->count, sizeof node->count);
  size_t i = 0;
  for (const struct node *item = node->first; item; item = item->next, ++i) {
    if (item->kind != NODE_SCALAR || (!item->quoted && is_null(item)))
      return wrong_type(target, item, field->key, "a list of texts");
    if (!(list[i] = sc_strdup(item->text)))
      return out_of_memory(target);
  }
  return SC_OK;
}

static enum sc_status read_items(const struct target *target, const struct field *field, const struct node *node)
{
  if (node->kind != NODE_SEQUENCE || node->count == 0)
    return wrong_type(target, node, field->key, "a list of sections, each begun with '- '");
  char *list = sc_calloc_array(node->count, field->item_size);
  if (!list)
    return out_of_memory(target);
  memcpy(target->base + field->offset, &list, sizeof list);
  memcpy(target->base + field->extra, &node->count, sizeof node->count);
  size_t i = 0;
  for (const struct node *item = node->first; item; item = item->next, ++i) {
    struct target of_item = *target;
    const struct item_place place = {item->line, item->column};
    of_item.base = list + i * field->item_size;
    memcpy(of_item.base, &place, sizeof place);
    enum sc_status status = fields_read(&of_item, field->section, item, field->key);
    if (status != SC_OK)
      return status;
  }
  return SC_OK;
}

static enum sc_status read_field(const struct target *target, const struct field *field, const struct node *node)
{
  enum sc_status status = SC_OK;
  switch (field->kind) {
  case FIELD_NUMBER: {
    uint64_t value = 0;
    status = read_number(target, field, node, &value);
    if (status == SC_OK)
      memcpy(target->base + field->offset, &value, sizeof value);
    break;
  }
  case FIELD_REAL: status = read_real(target, field, node); break;
  case FIELD_TEXT: status = read_text(target, field, node); break;
  case FIELD_WORD: status = read_enum(target, field, node); break;
  case FIELD_NAME: status = read_name(target, field, node); break;
  case FIELD_BOOL: status = read_bool(target, field, node); break;
  case FIELD_NUMBERS:
  case FIELD_NAMES: return read_list(target, field, node);
  case FIELD_SECTION: status = fields_read(target, field->section, node, field->key); break;
  case FIELD_TEXTS: return read_texts(target, field, node);
  case FIELD_ITEMS: return read_items(target, field, node);
  }
  if (status == SC_OK && field->extra != NO_EXTRA)
    *(bool *)(target->base + field->extra) = true;
  return status;
}

static enum sc_status unknown_key(const struct target *target, const struct field *fields, const struct node *key,
                                  const char *section)
{
  struct sc_buf known = {0};
  for (const struct field *field = first_field(fields); field; field = next_field(field))
    sc_buf_printf(&known, "%s%s", field == fields ? "" : ", ", field->key);
  enum sc_status status =
      known.failed ? out_of_memory(target)
                   : node_error(key, target->name, target->err, "'%.80s' is not known %s%s; known here: %s", key->text,
                                section ? "in section " : "at the top level", section ? section : "", known.data);
  sc_buf_free(&known);
  return status;
}

/* section is the name for messages, NULL for the file itself. */
enum sc_status fields_read(const struct target *target, const struct field *fields, const struct node *node,
                           const char *section)
{
  if (node->kind != NODE_MAPPING)
    return wrong_type(target, node, section, "a section (indented 'key: value' lines)");
  for (const struct node *child = node->first; child; child = child->next) {
    const struct field *field = first_field(fields);
    while (field && strcmp(field->key, child->key->text) != 0)
      field = next_field(field);
    enum sc_status status = field ? read_field(target, field, child) : unknown_key(target, fields, child->key, section);
    if (status != SC_OK)
      return status;
  }
  for (const struct field *field = first_field(fields); field; field = next_field(field)) {
    const struct node *child = node->first;
    while (child && strcmp(child->key->text, field->key) != 0)
      child = child->next;
    if (field->required && !child)
      return section ? node_error(node->key ? node->key : node, target->name, target->err,
                                  "section '%s' lacks '%s': add it", section, field->key)
                     : node_error(node, target->name, target->err, "the file lacks '%s': add it", field->key);
  }
  return SC_OK;
}

/* The position of a key in a section, for checks that come after reading; the section itself if it is not there. */
const struct node *fields_find(const struct node *section, const char *key)
{
  const struct node *child = section->first;
  while (child && strcmp(child->key->text, key) != 0)
    child = child->next;
  return child ? child : section;
}

enum sc_status fields_read_file(const char *path, struct sc_buf *text, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  FILE *file = fopen(path, "re");
  if (!file)
    return sc_error_set(err, SC_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  char piece[4096];
  size_t got;
  while ((got = fread(piece, 1, sizeof piece, file)) > 0 && text->len <= MAX_FILE_BYTES)
    sc_buf_append(text, piece, got);
  if (ferror(file))
    status = sc_error_set(err, SC_ERR_IO, "cannot read configuration '%s': %s", path, strerror(errno));
  else if (text->failed)
    status = sc_error_set(err, SC_ERR_NOMEM, "out of memory while reading configuration '%s'", path);
  else if (text->len > MAX_FILE_BYTES)
    status = sc_error_set(err, SC_ERR_CONFIG, "%s: larger than 1 MiB: this is no configuration of synccount", path);
  fclose(file);
  return status;
}
