/* SPDX-License-Identifier: Apache-2.0
 * A YAML document as a small tree with positions: what libyaml's events leave after the parts that we refuse. */
#ifndef SC_CONFIG_NODE_H
#define SC_CONFIG_NODE_H

#include "base/base.h"

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
  enum node_kind kind;
  size_t line, column; /* from 1 */
  char *text;          /* SCALAR; NUL-terminated, holds no NUL */
  bool quoted;         /* SCALAR: it is text, whatever it looks like */
  struct node *key;    /* in a mapping: this value's key */
  struct node *first, *next;
  size_t count; /* children */
};

/* Parses exactly one document whose root is a mapping. name stands in messages. The caller frees *out. */
enum sc_status node_parse(const char *text, size_t size, const char *name, struct node **out,
                          struct sc_error *err) SC_NODISCARD;
void node_free(struct node *node);

/* "name:line:column: message"; returns SC_ERR_CONFIG. */
enum sc_status node_error(const struct node *node, const char *name, struct sc_error *err, const char *format, ...)
    SC_PRINTF(4, 5);

#endif
