/* SPDX-License-Identifier: Apache-2.0
 * libyaml events to a tree, with everything refused that a configuration has no use for: aliases can make a small file
 * explode, tags and several documents only hide mistakes, and a duplicate key means that one of two lines is ignored.
 */
#include "config/node.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define MAX_DEPTH 16u
#define MAX_NODES 10000u
#define MAX_SCALAR 4096u

struct loader {
  yaml_parser_t parser;
  const char *name;
  size_t nodes;
  struct sc_error *err;
};

static enum sc_status error_at(const char *name, yaml_mark_t mark, struct sc_error *err, const char *what)
{
  return sc_error_set(err, SC_ERR_CONFIG, "%s:%zu:%zu: %s", name, mark.line + 1, mark.column + 1, what);
}

enum sc_status node_error(const struct node *node, const char *name, struct sc_error *err, const char *format, ...)
{
  char text[700];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return sc_error_set(err, SC_ERR_CONFIG, "%s:%zu:%zu: %s", name, node->line, node->column, text);
}

void node_free(struct node *node)
{
  while (node) {
    struct node *next = node->next;
    node_free(node->key);
    node_free(node->first); /* depth is limited by MAX_DEPTH */
    free(node->text);
    free(node);
    node = next;
  }
}

static enum sc_status parser_error(struct loader *loader)
{
  const yaml_parser_t *parser = &loader->parser;
  if (parser->error == YAML_MEMORY_ERROR)
    return sc_error_set(loader->err, SC_ERR_NOMEM, "%s: out of memory", loader->name);
  yaml_mark_t mark = parser->problem_mark;
  const char *problem = parser->problem ? parser->problem : "not valid YAML";
  if (parser->error == YAML_READER_ERROR) /* it has a byte offset and no mark */
    return sc_error_set(loader->err, SC_ERR_CONFIG, "%s: byte %zu: %s: save the file as UTF-8 text", loader->name,
                        parser->problem_offset, problem);
  return sc_error_set(loader->err, SC_ERR_CONFIG, "%s:%zu:%zu: not valid YAML: %s%s%s", loader->name, mark.line + 1,
                      mark.column + 1, problem, parser->context ? " " : "", parser->context ? parser->context : "");
}

static enum sc_status next_event(struct loader *loader, yaml_event_t *event)
{
  return yaml_parser_parse(&loader->parser, event) ? SC_OK : parser_error(loader);
}

/* Anchors and tags of any node event. */
static enum sc_status refuse_decorations(struct loader *loader, const yaml_event_t *event)
{
  const yaml_char_t *anchor = NULL, *tag = NULL;
  switch (event->type) {
  case YAML_ALIAS_EVENT:
    return error_at(loader->name, event->start_mark, loader->err,
                    "aliases (*name) are not accepted: write the value out");
  case YAML_SCALAR_EVENT:
    anchor = event->data.scalar.anchor;
    tag = event->data.scalar.tag;
    break;
  case YAML_SEQUENCE_START_EVENT:
    anchor = event->data.sequence_start.anchor;
    tag = event->data.sequence_start.tag;
    break;
  case YAML_MAPPING_START_EVENT:
    anchor = event->data.mapping_start.anchor;
    tag = event->data.mapping_start.tag;
    break;
  default: break;
  }
  if (anchor)
    return error_at(loader->name, event->start_mark, loader->err,
                    "anchors (&name) are not accepted: write the value out");
  if (tag)
    return error_at(loader->name, event->start_mark, loader->err, "tags (!name) are not accepted: remove it");
  return SC_OK;
}

static enum sc_status new_node(struct loader *loader, const yaml_event_t *event, struct node **out)
{
  if (++loader->nodes > MAX_NODES)
    return error_at(loader->name, event->start_mark, loader->err, "too many values for a configuration (limit: 10000)");
  struct node *node = calloc(1, sizeof *node);
  if (!node)
    return sc_error_set(loader->err, SC_ERR_NOMEM, "%s: out of memory", loader->name);
  node->line = event->start_mark.line + 1;
  node->column = event->start_mark.column + 1;
  *out = node;
  return SC_OK;
}

static enum sc_status fill_scalar(struct loader *loader, const yaml_event_t *event, struct node *node)
{
  size_t length = event->data.scalar.length;
  const char *value = (const char *)event->data.scalar.value;
  if (length > MAX_SCALAR)
    return error_at(loader->name, event->start_mark, loader->err, "this value is too long (limit: 4096 bytes)");
  if (memchr(value, '\0', length))
    return error_at(loader->name, event->start_mark, loader->err, "this value holds a NUL character: remove it");
  node->kind = NODE_SCALAR;
  node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  node->text = sc_strndup(value, length);
  return node->text ? SC_OK : sc_error_set(loader->err, SC_ERR_NOMEM, "%s: out of memory", loader->name);
}

static enum sc_status check_key(struct loader *loader, const struct node *mapping, const struct node *key)
{
  if (key->kind != NODE_SCALAR)
    return node_error(key, loader->name, loader->err, "a key must be a plain word");
  for (const struct node *other = mapping->first; other; other = other->next) {
    if (strcmp(other->key->text, key->text) == 0)
      return node_error(key, loader->name, loader->err,
                        "key '%s' stands here for the second time (first: line %zu): remove one", key->text,
                        other->key->line);
  }
  return SC_OK;
}

static enum sc_status load_node(struct loader *loader, const yaml_event_t *event, unsigned depth, struct node **out);

/* Reads children until the collection's end event. A mapping's children come as key, value, key, value. */
static enum sc_status load_children(struct loader *loader, struct node *node, unsigned depth)
{
  struct node **tail = &node->first, *key = NULL;
  enum sc_status status;
  for (;;) {
    yaml_event_t event;
    status = next_event(loader, &event);
    if (status != SC_OK)
      break;
    if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
      yaml_event_delete(&event);
      break;
    }
    struct node *child = NULL;
    status = load_node(loader, &event, depth + 1, &child);
    yaml_event_delete(&event);
    if (status != SC_OK)
      break;
    if (node->kind == NODE_MAPPING && !key) {
      key = child;
      status = check_key(loader, node, key);
      if (status != SC_OK)
        break;
      continue;
    }
    child->key = key;
    key = NULL;
    *tail = child;
    tail = &child->next;
    ++node->count;
  }
  node_free(key);
  return status;
}

static enum sc_status load_node(struct loader *loader, const yaml_event_t *event, unsigned depth, struct node **out)
{
  struct node *node = NULL;
  enum sc_status status = refuse_decorations(loader, event);
  if (status == SC_OK && depth > MAX_DEPTH)
    status = error_at(loader->name, event->start_mark, loader->err, "nested too deep (limit: 16 levels)");
  if (status == SC_OK)
    status = new_node(loader, event, &node);
  if (status != SC_OK)
    return status;
  switch (event->type) {
  case YAML_SCALAR_EVENT: status = fill_scalar(loader, event, node); break;
  case YAML_SEQUENCE_START_EVENT:
    node->kind = NODE_SEQUENCE;
    status = load_children(loader, node, depth);
    break;
  case YAML_MAPPING_START_EVENT:
    node->kind = NODE_MAPPING;
    status = load_children(loader, node, depth);
    break;
  default: /* the parser's grammar leaves nothing else in a node's place */
    status = error_at(loader->name, event->start_mark, loader->err, "a value was expected here");
    break;
  }
  if (status != SC_OK) {
    node_free(node);
    return status;
  }
  *out = node;
  return SC_OK;
}

/* Takes events until one of the wanted type; anything but the two stream and document starts before it is an error. */
static enum sc_status load_document(struct loader *loader, struct node **out)
{
  yaml_event_t event;
  struct node *root = NULL;
  enum sc_status status = SC_OK;
  for (bool done = false; !done && status == SC_OK;) {
    status = next_event(loader, &event);
    if (status != SC_OK)
      break;
    switch (event.type) {
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT: break;
    case YAML_DOCUMENT_START_EVENT:
      if (root)
        status =
            error_at(loader->name, event.start_mark, loader->err, "a second document starts here: keep one to a file");
      break;
    case YAML_STREAM_END_EVENT: done = true; break;
    default: status = load_node(loader, &event, 1, &root); break;
    }
    yaml_event_delete(&event);
  }
  if (status == SC_OK && !root)
    status = sc_error_set(loader->err, SC_ERR_CONFIG,
                          "%s:1:1: the file is empty: a configuration has a 'model' or a 'run' section, a gate has "
                          "'version' and 'expect'",
                          loader->name);
  if (status == SC_OK && root->kind != NODE_MAPPING)
    status = node_error(root, loader->name, loader->err,
                        "sections were expected here ('model:' or 'run:', of a gate 'version:' and 'expect:')");
  if (status != SC_OK) {
    node_free(root);
    return status;
  }
  *out = root;
  return SC_OK;
}

enum sc_status node_parse(const char *text, size_t size, const char *name, struct node **out, struct sc_error *err)
{
  struct loader loader = {.name = name, .err = err};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* libyaml takes it for a column of the first line */
    text += 3;
    size -= 3;
  }
  if (!yaml_parser_initialize(&loader.parser))
    return sc_error_set(err, SC_ERR_NOMEM, "%s: out of memory", name);
  yaml_parser_set_encoding(&loader.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&loader.parser, (const unsigned char *)text, size);
  enum sc_status status = load_document(&loader, out);
  yaml_parser_delete(&loader.parser);
  return status;
}
