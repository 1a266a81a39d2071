/* SPDX-License-Identifier: Apache-2.0
 * Every file of configs/ is read, is known here, and says what the model is. */
#include "test_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

static const struct {
  const char *name, *activation;
  uint64_t hidden, intermediate, experts, top_k, layers, moe_layers;
  enum sc_config_layout layout;
} shapes[] = {
    {"minimind-3-moe", "silu", 768, 2432, 4, 1, 8, 8, SC_CONFIG_LAYOUT_PACKED},
    {"minimind-seed", "silu", 512, 1408, 8, 1, 8, 8, SC_CONFIG_LAYOUT_PACKED},
    {"mixtral-8x7b", "silu", 4096, 14336, 8, 2, 32, 32, SC_CONFIG_LAYOUT_PACKED},
    {"gpt-oss-120b", "swigluoai", 2880, 2880, 128, 4, 36, 36, SC_CONFIG_LAYOUT_INTERLEAVED},
    {"gpt-oss-20b", "swigluoai", 2880, 2880, 32, 4, 24, 24, SC_CONFIG_LAYOUT_INTERLEAVED},
    {"qwen3-30b-a3b", "silu", 2048, 768, 128, 8, 48, 48, SC_CONFIG_LAYOUT_PACKED},
    {"qwen3-235b-a22b", "silu", 4096, 1536, 128, 8, 94, 94, SC_CONFIG_LAYOUT_PACKED},
    {"deepseek-v3", "silu", 7168, 2048, 256, 8, 61, 58, SC_CONFIG_LAYOUT_PACKED},
    {"minimax-m3", "swigluoai_uninterleave", 6144, 3072, 128, 4, 60, 57, SC_CONFIG_LAYOUT_PACKED},
    {"nemotron-3-nano-30b-a3b", "relu2_no_mul", 2688, 1856, 128, 6, 52, 23, SC_CONFIG_LAYOUT_NONE},
};

static char *shipped(const char *file)
{
  const char *source = getenv("SC_SOURCE");
  assert_non_null(source);
  char *path = sc_asprintf("%s/configs/%s", source, file);
  assert_non_null(path);
  return path;
}

static void shipped_shapes_hold_the_models_figures(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(shapes); ++i) {
    char file[64];
    snprintf(file, sizeof file, "%s.yaml", shapes[i].name);
    char *path = shipped(file);
    struct sc_config *config = NULL;
    struct sc_error err = {0};
    if (sc_config_read(path, &config, &err) != SC_OK)
      fail_msg("%s", err.message);
    const struct sc_config_model *m = &config->model;
    assert_true(m->set);
    assert_string_equal(m->name, shapes[i].name);
    assert_non_null(m->source);
    assert_string_equal(m->activation, shapes[i].activation);
    assert_int_equal(m->hidden, shapes[i].hidden);
    assert_int_equal(m->intermediate, shapes[i].intermediate);
    assert_int_equal(m->experts, shapes[i].experts);
    assert_int_equal(m->top_k, shapes[i].top_k);
    assert_int_equal(m->layers, shapes[i].layers);
    assert_int_equal(m->moe_layers, shapes[i].moe_layers);
    assert_int_equal(m->w13_layout, shapes[i].layout);
    /* The gpt-oss and minimax configurations state the parameters that no name implies. */
    bool swigluoai = strncmp(m->activation, "swigluoai", 9) == 0;
    assert_int_equal(m->alpha.set && m->beta.set && m->limit.set, swigluoai);
    sc_config_free(config);
    free(path);
  }
}

static const char *const gates[] = {"one-sync-per-layer.yaml", "three-layers.yaml", "no-device-wide-syncs.yaml"};

static bool is_gate(const char *file)
{
  for (size_t i = 0; i < SC_COUNTOF(gates); ++i) {
    if (strcmp(gates[i], file) == 0)
      return true;
  }
  return false;
}

static void shipped_gates_are_read(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(gates); ++i) {
    char *path = shipped(gates[i]);
    struct sc_config_gate *gate = NULL;
    struct sc_error err = {0};
    if (sc_config_read_gate(path, &gate, &err) != SC_OK)
      fail_msg("%s", err.message);
    assert_non_null(gate->name);
    for (size_t k = 0; k < gate->expect_count; ++k)
      assert_non_null(gate->expect[k].reason);
    sc_config_gate_free(gate);
    free(path);
  }
}

static void every_file_in_configs_is_in_the_table(void **state)
{
  (void)state;
  char *path = shipped("");
  DIR *dir = opendir(path);
  assert_non_null(dir);
  size_t files = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (!sc_match("*.yaml", entry->d_name) || is_gate(entry->d_name))
      continue;
    ++files;
    bool known = false;
    for (size_t i = 0; i < SC_COUNTOF(shapes); ++i)
      known = known || (strncmp(entry->d_name, shapes[i].name, strlen(shapes[i].name)) == 0 &&
                        strcmp(entry->d_name + strlen(shapes[i].name), ".yaml") == 0);
    if (!known)
      fail_msg("configs/%s has no test", entry->d_name);
  }
  closedir(dir);
  free(path);
  assert_int_equal(files, SC_COUNTOF(shapes));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shipped_shapes_hold_the_models_figures),
      cmocka_unit_test(shipped_gates_are_read),
      cmocka_unit_test(every_file_in_configs_is_in_the_table),
  };
  return cmocka_run_group_tests_name("config_shipped", tests, NULL, NULL);
}
