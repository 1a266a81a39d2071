/* SPDX-License-Identifier: Apache-2.0
 * Configurations from memory: what is read, and that every refused file is refused at the right place with the right
 * words. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "kernels/fused_args.h"

#define MODEL_HEAD                                                                                \
  "model:\n  name: m\n  hidden: 64\n  intermediate: 128\n  experts: 8\n  top_k: 2\n  layers: 4\n" \
  "  dtype: bf16\n"
#define ROUTER "  router: {scoring: softmax, renormalize: true}\n"
#define MODEL MODEL_HEAD "  activation: silu\n  w13_layout: packed\n" ROUTER

static struct sc_config *read_ok(const char *text)
{
  struct sc_config *config = NULL;
  struct sc_error err = {0};
  if (sc_config_read_memory(text, strlen(text), "t.yaml", &config, &err) != SC_OK)
    fail_msg("refused: %s", err.message);
  return config;
}

/* Refused as SC_ERR_CONFIG with a message that starts with `where` and holds `what`; *out is untouched. */
static void assert_refused_bytes(const char *text, size_t size, const char *where, const char *what)
{
  struct sc_config *config = (struct sc_config *)&config;
  struct sc_error err = {0};
  assert_int_equal(sc_config_read_memory(text, size, "t.yaml", &config, &err), SC_ERR_CONFIG);
  assert_ptr_equal(config, &config);
  assert_int_equal(err.status, SC_ERR_CONFIG);
  if (strncmp(err.message, where, strlen(where)) != 0 || !strstr(err.message, what))
    fail_msg("wanted '%s ... %s', got '%s'", where, what, err.message);
}

static void assert_refused(const char *text, const char *where, const char *what)
{
  assert_refused_bytes(text, strlen(text), where, what);
}

static void model_is_read_into_every_field(void **state)
{
  (void)state;
  struct sc_config *config = read_ok(
      "model:\n"
      "  name: full\n  source: \"a: file\"\n  notes: n\n"
      "  hidden: 2880\n  intermediate: 1440\n  experts: 32\n  top_k: 4\n  layers: 24\n  moe_layers: 23\n  dtype: fp32\n"
      "  activation: swigluoai\n  alpha: 1.702\n  beta: 1\n  limit: 7\n  w13_layout: interleaved\n  biases: true\n"
      "  router:\n    scoring: sigmoid\n    renormalize: false\n    correction_bias: true\n    groups: 8\n    "
      "groups_chosen: 4\n    scale: 2.5\n"
      "  shared_experts:\n    count: 1\n    intermediate: 2048\n");
  const struct sc_config_model *m = &config->model;
  assert_true(m->set);
  assert_false(config->run.set);
  assert_string_equal(m->name, "full");
  assert_string_equal(m->source, "a: file");
  assert_string_equal(m->notes, "n");
  assert_int_equal(m->hidden, 2880);
  assert_int_equal(m->intermediate, 1440);
  assert_int_equal(m->experts, 32);
  assert_int_equal(m->top_k, 4);
  assert_int_equal(m->layers, 24);
  assert_int_equal(m->moe_layers, 23);
  assert_int_equal(m->dtype, SC_CONFIG_FP32);
  assert_string_equal(m->activation, "swigluoai");
  assert_true(m->gated);
  assert_true(m->alpha.set && m->beta.set && m->limit.set);
  assert_true(m->alpha.value == 1.702 && m->beta.value == 1 && m->limit.value == 7);
  assert_int_equal(m->w13_layout, SC_CONFIG_LAYOUT_INTERLEAVED);
  assert_true(m->biases);
  assert_int_equal(m->router.scoring, SC_CONFIG_SIGMOID);
  assert_false(m->router.renormalize);
  assert_true(m->router.correction_bias);
  assert_int_equal(m->router.groups, 8);
  assert_int_equal(m->router.groups_chosen, 4);
  assert_true(m->router.scale.set && m->router.scale.value == 2.5);
  assert_int_equal(m->shared_experts.count, 1);
  assert_int_equal(m->shared_experts.intermediate, 2048);
  sc_config_free(config);
}

static void run_section_is_read_and_absent_options_stay_unset(void **state)
{
  (void)state;
  struct sc_config *config =
      read_ok("run:\n  experts: [4, 8, 16]\n  tokens:\n    - 1\n    - 4096\n  variants: [sorted]\n"
              "  layers: 2\n  forwards: 5\n  routing: one-expert\n  seed: 0\n  dtype: fp32\n");
  const struct sc_config_run *run = &config->run;
  assert_true(run->set);
  assert_false(config->model.set);
  assert_int_equal(run->experts_count, 3);
  assert_int_equal(run->experts[0], 4);
  assert_int_equal(run->experts[2], 16);
  assert_int_equal(run->tokens_count, 2);
  assert_int_equal(run->tokens[1], 4096);
  assert_int_equal(run->variants_count, 1);
  assert_string_equal(run->variants[0], "sorted");
  assert_int_equal(run->layers, 2);
  assert_int_equal(run->forwards, 5);
  assert_string_equal(run->routing, "one-expert");
  assert_true(run->has_seed);
  assert_true(run->has_dtype);
  assert_int_equal(run->dtype, SC_CONFIG_FP32);
  sc_config_free(config);

  config = read_ok(MODEL);
  assert_null(config->run.experts);
  assert_null(config->run.routing);
  assert_false(config->run.has_seed);
  assert_false(config->run.has_dtype);
  assert_int_equal(config->model.moe_layers, 4); /* the whole model when the file does not say */
  assert_false(config->model.biases);
  assert_int_equal(config->model.router.groups, 0);
  sc_config_free(config);
}

static void null_parameters_equal_absent_ones(void **state)
{
  (void)state;
  static const char *const files[] = {
      MODEL_HEAD "  activation: swigluoai\n  alpha: null\n  beta: ~\n  limit:\n  w13_layout: interleaved\n" ROUTER,
      MODEL_HEAD "  activation: swigluoai\n  w13_layout: interleaved\n" ROUTER,
  };
  for (size_t i = 0; i < SC_COUNTOF(files); ++i) {
    struct sc_config *config = read_ok(files[i]);
    assert_false(config->model.alpha.set || config->model.beta.set || config->model.limit.set);
    sc_config_free(config);
  }
}

static void no_activation_implies_parameters(void **state)
{
  (void)state;
  struct sc_config *config =
      read_ok(MODEL_HEAD "  activation: swigluoai_uninterleave\n  limit: 7\n  w13_layout: packed\n" ROUTER);
  assert_false(config->model.alpha.set || config->model.beta.set);
  assert_true(config->model.limit.set);
  sc_config_free(config);
}

static void gated_shapes_need_their_layout_and_others_have_none(void **state)
{
  (void)state;
  assert_refused(MODEL_HEAD "  activation: silu\n" ROUTER, "t.yaml:1:1:", "lacks 'w13_layout'");
  assert_refused(MODEL_HEAD "  activation: silu\n  w13_layout: none\n" ROUTER,
                 "t.yaml:10:15:", "packed or interleaved");
  assert_refused(MODEL_HEAD "  activation: relu2_no_mul\n  w13_layout: packed\n" ROUTER,
                 "t.yaml:10:15:", "has no gate");
  struct sc_config *config = read_ok(MODEL_HEAD "  activation: relu2_no_mul\n" ROUTER);
  assert_false(config->model.gated);
  assert_int_equal(config->model.w13_layout, SC_CONFIG_LAYOUT_NONE);
  sc_config_free(config);
}

static void parameters_an_activation_does_not_take_are_refused(void **state)
{
  (void)state;
  assert_refused(MODEL "  alpha: 1.7\n", "t.yaml:12:10:", "silu takes no alpha");
  assert_refused(MODEL "  beta: 1\n", "t.yaml:12:9:", "silu takes no alpha and no beta");
  assert_refused(MODEL_HEAD "  activation: relu2_no_mul\n  limit: 7\n" ROUTER, "t.yaml:10:10:", "takes no limit");
  assert_refused(MODEL "  limit: 0\n", "t.yaml:12:10:", "above 0");
  assert_refused(MODEL "  limit: -1\n", "t.yaml:12:10:", "above 0");
  struct sc_config *config = read_ok(MODEL "  limit: 7\n  alpha: null\n");
  assert_true(config->model.limit.set);
  sc_config_free(config);
}

static void unknown_keys_are_refused_with_the_known_ones(void **state)
{
  (void)state;
  assert_refused("modle:\n  name: x\n", "t.yaml:1:1:", "'modle' is not known at the top level; known here: model, run");
  assert_refused(MODEL "  hiden: 3\n",
                 "t.yaml:12:3:", "'hiden' is not known in section model; known here: name, source");
  assert_refused("run:\n  speed: 1\n", "t.yaml:2:3:", "'speed' is not known in section run");
  assert_refused(MODEL_HEAD
                 "  activation: silu\n  w13_layout: packed\n  router: {scoring: softmax, renormalize: true, x: 1}\n",
                 "t.yaml:11:49:", "'x' is not known in section router");
}

static void duplicate_keys_are_refused_with_both_places(void **state)
{
  (void)state;
  assert_refused(MODEL "  hidden: 65\n", "t.yaml:12:3:", "'hidden' stands here for the second time (first: line 3)");
  assert_refused("run:\n  seed: 1\nrun:\n  seed: 1\n", "t.yaml:3:1:", "'run' stands here for the second time");
}

static void missing_keys_are_refused(void **state)
{
  (void)state;
  assert_refused("model:\n  name: x\n", "t.yaml:1:1:", "section 'model' lacks 'hidden'");
  assert_refused(MODEL_HEAD "  activation: silu\n  w13_layout: packed\n  router: {scoring: softmax}\n",
                 "t.yaml:11:3:", "section 'router' lacks 'renormalize'");
}

static void wrong_types_are_refused(void **state)
{
  (void)state;
  static const struct {
    const char *text, *where, *what;
  } cases[] = {
      {"run:\n  layers: many\n", "t.yaml:2:11:", "'layers' must be a whole number from 1 to 1024, not many"},
      {"run:\n  layers: \"2\"\n", "t.yaml:2:11:", "not quoted text"},
      {"run:\n  layers: 2.0\n", "t.yaml:2:11:", "whole number"},
      {"run:\n  layers: 0x10\n", "t.yaml:2:11:", "whole number"},
      {"run:\n  layers: 1_0\n", "t.yaml:2:11:", "whole number"},
      {"run:\n  layers: 1e1\n", "t.yaml:2:11:", "whole number"},
      {"run:\n  layers:\n", "t.yaml:2:", "not nothing"},
      {"run:\n  layers: [2]\n", "t.yaml:2:11:", "not a list"},
      {"run:\n  layers: {a: 2}\n", "t.yaml:2:11:", "not a section"},
      {"run:\n  experts: 4\n", "t.yaml:2:12:", "a list of numbers"},
      {"run:\n  experts: []\n", "t.yaml:2:12:", "a list of numbers"},
      {"run:\n  experts: [4, x]\n", "t.yaml:2:16:", "whole number"},
      {"run:\n  experts: [4, [8]]\n", "t.yaml:2:16:", "not a list"},
      {"run:\n  variants: [masked, mask]\n", "t.yaml:2:22:", "masked, sorted or fused-nvfp4"},
      {"run:\n  routing: any\n", "t.yaml:2:12:", "router, uniform, skewed or one-expert"},
      {"run:\n  dtype: fp16\n", "t.yaml:2:10:", "bf16 or fp32, not fp16"},
      {"run: 3\n", "t.yaml:1:6:", "'run' must be a section"},
      {"model:\n", "t.yaml:1:", "'model' must be a section"},
      {"model:\n  name: {a: b}\n", "t.yaml:2:9:", "'name' must be text"},
      {"model:\n  name:\n", "t.yaml:2:", "'name' must be text"},
      {MODEL "  biases: yes\n", "t.yaml:12:11:", "true or false, not yes"},
      {MODEL "  limit: big\n", "t.yaml:12:10:", "a number or null"},
      {MODEL "  limit: .nan\n", "t.yaml:12:10:", "a number or null"},
      {MODEL "  limit: 1e999\n", "t.yaml:12:10:", "a number or null"},
      {"- a\n", "t.yaml:1:1:", "sections were expected"},
      {"word\n", "t.yaml:1:1:", "sections were expected"},
      {"? [a]\n: b\n", "t.yaml:1:3:", "a key must be a plain word"},
  };
  for (size_t i = 0; i < SC_COUNTOF(cases); ++i)
    assert_refused(cases[i].text, cases[i].where, cases[i].what);
}

static void absurd_sizes_are_refused(void **state)
{
  (void)state;
  static const char *const values[] = {"0", "-1", "1048577", "18446744073709551616", "99999999999999999999999999"};
  for (size_t i = 0; i < SC_COUNTOF(values); ++i) {
    char text[400];
    snprintf(text, sizeof text, "model:\n  name: m\n  hidden: %s\n", values[i]);
    assert_refused(text, "t.yaml:3:11:", "'hidden' must be a whole number from 1 to 1048576");
  }
  assert_refused("run:\n  experts: [4097]\n", "t.yaml:2:13:", "from 1 to 4096");
  assert_refused("run:\n  seed: -1\n", "t.yaml:2:9:", "whole number");
}

static void figures_that_contradict_each_other_are_refused(void **state)
{
  (void)state;
  assert_refused(
      "model:\n  name: m\n  hidden: 64\n  intermediate: 128\n  experts: 2\n  top_k: 3\n  layers: 4\n  dtype: bf16\n"
      "  activation: silu\n  w13_layout: packed\n" ROUTER,
      "t.yaml:6:10:", "'top_k' (3) is more than 'experts' (2)");
  assert_refused(MODEL "  moe_layers: 5\n", "t.yaml:12:15:", "'moe_layers' (5) is more than 'layers' (4)");
  assert_refused(MODEL_HEAD "  activation: silu\n  w13_layout: packed\n"
                            "  router: {scoring: sigmoid, renormalize: true, groups: 3, groups_chosen: 1}\n",
                 "t.yaml:11:57:", "must divide 'experts' (8)");
  assert_refused(MODEL_HEAD "  activation: silu\n  w13_layout: packed\n"
                            "  router: {scoring: sigmoid, renormalize: true, groups: 4}\n",
                 "t.yaml:11:11:", "go together");
}

static void anchors_aliases_tags_and_further_documents_are_refused(void **state)
{
  (void)state;
  assert_refused("run: &r\n  seed: 1\n", "t.yaml:1:6:", "anchors (&name) are not accepted");
  assert_refused("run:\n  seed: &s 1\n", "t.yaml:2:9:", "anchors");
  assert_refused("run:\n  experts: &e [1]\n", "t.yaml:2:12:", "anchors");
  assert_refused("run:\n  seed: *s\n", "t.yaml:2:9:", "aliases (*name) are not accepted");
  assert_refused("run:\n  seed: !!int 1\n", "t.yaml:2:9:", "tags (!name) are not accepted");
  assert_refused("run: !x {seed: 1}\n", "t.yaml:1:6:", "tags");
  assert_refused("run: {seed: 1}\n---\nrun: {seed: 2}\n", "t.yaml:2:1:", "a second document");
  assert_refused("run: {<<: 1}\n", "t.yaml:1:7:", "'<<' is not known");
}

static void broken_and_hostile_yaml_is_refused_at_its_place(void **state)
{
  (void)state;
  assert_refused("", "t.yaml:1:1:", "the file is empty");
  assert_refused("# only a comment\n", "t.yaml:1:1:", "the file is empty");
  assert_refused("run:\n  seed: [1\n", "t.yaml:", "not valid YAML");
  assert_refused("run:\n\tseed: 1\n", "t.yaml:2:1:", "not valid YAML");
  assert_refused_bytes("run: \xff\xfe\n", 8, "t.yaml: byte 5:", "UTF-8");
  assert_refused_bytes("run: \"a\\0b\"\n", 12, "t.yaml:1:6:", "NUL");

  struct sc_buf buf = {0};
  sc_buf_puts(&buf, "run:\n  seed: ");
  for (int i = 0; i < 200000; ++i)
    sc_buf_puts(&buf, "[");
  assert_false(buf.failed);
  assert_refused_bytes(buf.data, buf.len, "t.yaml:2:", "nested too deep");
  sc_buf_free(&buf);

  sc_buf_puts(&buf, "run:\n  experts: [");
  for (int i = 0; i < 20000; ++i)
    sc_buf_puts(&buf, "1,");
  sc_buf_puts(&buf, "1]\n");
  assert_refused_bytes(buf.data, buf.len, "t.yaml:2:", "too many values");
  sc_buf_free(&buf);

  sc_buf_puts(&buf, "model:\n  name: ");
  for (int i = 0; i < 5000; ++i)
    sc_buf_puts(&buf, "x");
  assert_refused_bytes(buf.data, buf.len, "t.yaml:2:9:", "too long");
  sc_buf_free(&buf);
}

static void every_prefix_of_a_good_file_is_read_or_refused(void **state)
{
  (void)state;
  static const char text[] =
      MODEL "  shared_experts: {count: 1, intermediate: 5}\nrun:\n  experts: [4, 8]\n  variants: [masked]\n";
  for (size_t n = 0; n < sizeof text; ++n) {
    struct sc_config *config = NULL;
    struct sc_error err = {0};
    enum sc_status status = sc_config_read_memory(text, n, "t.yaml", &config, &err);
    assert_true(status == SC_OK || (status == SC_ERR_CONFIG && err.message[0]));
    sc_config_free(config);
  }
}

static void files_that_cannot_be_read_are_an_io_error(void **state)
{
  (void)state;
  struct sc_config *config = NULL;
  struct sc_error err = {0};
  assert_int_equal(sc_config_read("/nonexistent/x.yaml", &config, &err), SC_ERR_IO);
  assert_non_null(strstr(err.message, "/nonexistent/x.yaml"));
  assert_non_null(strstr(err.message, "No such file"));
  assert_int_equal(sc_config_read("/", &config, &err), SC_ERR_IO);
  assert_int_equal(sc_config_read("/dev/zero", &config, &err), SC_ERR_CONFIG);
  assert_non_null(strstr(err.message, "larger than 1 MiB"));
}

static void memory_of_a_layer_is_its_weights_and_what_is_kept_of_its_forward(void **state)
{
  (void)state;
  struct sc_config_shape shape = {
      .hidden = 4096, .intermediate = 14336, .experts = 8, .top_k = 2, .tokens = 1, .gated = true};
  struct sc_config_memory memory;
  assert_true(sc_config_memory(&shape, &memory));
  const uint64_t expert = 3ull * 4096 * 14336, router = 8 * 4096, choices = 2 * 4;
  assert_int_equal(memory.layer_bytes, 2 * (8 * expert + router + 2 * 4096) + choices);
  shape.dtype = SC_CONFIG_FP32;
  assert_true(sc_config_memory(&shape, &memory));
  assert_int_equal(memory.layer_bytes, 4 * (8 * expert + router + 2 * 4096) + choices);
  shape.gated = false;
  assert_true(sc_config_memory(&shape, &memory));
  assert_int_equal(memory.layer_bytes, 4 * (8 * 2ull * 4096 * 14336 + router + 2 * 4096) + choices);
  /* activations grow with the tokens and do not depend on the layers; each layer keeps its outputs */
  uint64_t one = memory.fixed_bytes, layer = memory.layer_bytes;
  shape.tokens = 4096;
  assert_true(sc_config_memory(&shape, &memory));
  assert_int_equal(memory.fixed_bytes, 4096 * one);
  assert_int_equal(memory.layer_bytes - layer, 4095 * (4 * 2 * 4096 + choices));
}

/* As the fused layer's own constants have it: config sees no kernel, so this holds the two together. Biases are fp32. */
static void memory_of_the_fused_layer_comes_on_top(void **state)
{
  (void)state;
  struct sc_config_shape shape = {
      .hidden = 2880, .intermediate = 1856, .experts = 32, .top_k = 4, .tokens = 64, .gated = true};
  struct sc_config_memory without, with;
  assert_true(sc_config_memory(&shape, &without));
  shape.nvfp4 = true;
  assert_true(sc_config_memory(&shape, &with));
  const uint64_t tiles13 = 3712 / SC_TILE_ROWS * 45, tiles2 = 2880 / SC_TILE_ROWS * 29, rows = 8 * 64 * 4;
  assert_int_equal(2880 / SC_TILE_COLUMNS, 45);
  assert_int_equal(1856 / SC_TILE_COLUMNS, 29);
  assert_int_equal(with.layer_bytes - without.layer_bytes, 32 * (tiles13 + tiles2) * SC_TILE_BYTES);
  assert_int_equal(with.fixed_bytes - without.fixed_bytes,
                   rows * (2 * 1856 + 2 * 2880) + 64 * 2880 * 2 + 3712ull * 2880 * (2 + 2));
  /* many choices: blocks of the most rows, of each expert's last one all rows but one empty */
  struct sc_config_shape many = shape, many_without = shape;
  many.tokens = many_without.tokens = 4096;
  many_without.nvfp4 = false;
  struct sc_config_memory large, large_without;
  assert_true(sc_config_memory(&many, &large) && sc_config_memory(&many_without, &large_without));
  const uint64_t padded = 4096 * 4 + 32 * (SC_WGMMA_MOST_ROWS - 1);
  assert_int_equal(large.fixed_bytes - large_without.fixed_bytes,
                   padded * (2 * 1856 + 2 * 2880) + 4096 * 2880 * 2 + 3712ull * 2880 * (2 + 2));
  without = with;
  shape.nvfp4_biases = true;
  assert_true(sc_config_memory(&shape, &with));
  assert_int_equal(with.layer_bytes - without.layer_bytes, 32 * 4 * (3712 + 2880));
}

static void memory_beyond_the_limits_is_refused(void **state)
{
  (void)state;
  struct sc_config_memory memory;
  struct sc_config_shape shape = {.hidden = UINT64_MAX, .intermediate = 1, .experts = 1, .top_k = 1, .tokens = 1};
  assert_false(sc_config_memory(&shape, &memory));
  shape.hidden = SC_CONFIG_MAX_WIDTH;
  shape.intermediate = SC_CONFIG_MAX_WIDTH;
  shape.experts = SC_CONFIG_MAX_EXPERTS;
  shape.top_k = SC_CONFIG_MAX_EXPERTS;
  shape.tokens = SC_CONFIG_MAX_TOKENS;
  shape.dtype = SC_CONFIG_FP32;
  shape.gated = true;
  if (sc_config_memory(&shape, &memory)) /* the largest allowed figures: a value, not a wrapped one */
    assert_true(memory.layer_bytes > 1ull << 53 && memory.fixed_bytes > 1ull << 57);
}

static void layers_that_fit_are_counted_and_never_scaled(void **state)
{
  (void)state;
  struct sc_config_memory memory = {.layer_bytes = 100, .fixed_bytes = 50};
  assert_int_equal(sc_config_layers_that_fit(&memory, 32, 49), 0);
  assert_int_equal(sc_config_layers_that_fit(&memory, 32, 50), 0);
  assert_int_equal(sc_config_layers_that_fit(&memory, 32, 149), 0);
  assert_int_equal(sc_config_layers_that_fit(&memory, 32, 150), 1);
  assert_int_equal(sc_config_layers_that_fit(&memory, 32, 499), 4);
  assert_int_equal(sc_config_layers_that_fit(&memory, 32, 1u << 30), 32);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(model_is_read_into_every_field),
      cmocka_unit_test(run_section_is_read_and_absent_options_stay_unset),
      cmocka_unit_test(null_parameters_equal_absent_ones),
      cmocka_unit_test(no_activation_implies_parameters),
      cmocka_unit_test(gated_shapes_need_their_layout_and_others_have_none),
      cmocka_unit_test(parameters_an_activation_does_not_take_are_refused),
      cmocka_unit_test(unknown_keys_are_refused_with_the_known_ones),
      cmocka_unit_test(duplicate_keys_are_refused_with_both_places),
      cmocka_unit_test(missing_keys_are_refused),
      cmocka_unit_test(wrong_types_are_refused),
      cmocka_unit_test(absurd_sizes_are_refused),
      cmocka_unit_test(figures_that_contradict_each_other_are_refused),
      cmocka_unit_test(anchors_aliases_tags_and_further_documents_are_refused),
      cmocka_unit_test(broken_and_hostile_yaml_is_refused_at_its_place),
      cmocka_unit_test(every_prefix_of_a_good_file_is_read_or_refused),
      cmocka_unit_test(files_that_cannot_be_read_are_an_io_error),
      cmocka_unit_test(memory_of_a_layer_is_its_weights_and_what_is_kept_of_its_forward),
      cmocka_unit_test(memory_of_the_fused_layer_comes_on_top),
      cmocka_unit_test(memory_beyond_the_limits_is_refused),
      cmocka_unit_test(layers_that_fit_are_counted_and_never_scaled),
  };
  return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
