/* SPDX-License-Identifier: Apache-2.0
 * From options and configuration to a plan, and from a plan to what fits. */
#include "test_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/settings.h"

static struct settings settings;

static int fresh(void **state)
{
  (void)state;
  settings_init(&settings);
  return 0;
}

static int done(void **state)
{
  (void)state;
  settings_free(&settings);
  return 0;
}

static void set(enum cli_option_id id, const char *value)
{
  struct sc_error err = {0};
  if (!settings_option(&settings, id, value, &err))
    fail_msg("refused: %s", err.message);
}

static struct plan plan_ok(bool simulated)
{
  struct plan plan;
  struct sc_error err = {0};
  if (settings_plan(&settings, simulated, &plan, &err) != SC_OK)
    fail_msg("no plan: %s", err.message);
  return plan;
}

static void use_config(const char *text)
{
  struct sc_error err = {0};
  if (sc_config_read_memory(text, strlen(text), "t.yaml", &settings.config, &err) != SC_OK)
    fail_msg("%s", err.message);
}

static void defaults_are_the_seeds_layer(void **state)
{
  (void)state;
  struct plan plan = plan_ok(false);
  assert_int_equal(plan.experts_count, 3);
  assert_int_equal(plan.experts[0], 4);
  assert_int_equal(plan.experts[1], 8);
  assert_int_equal(plan.experts[2], 16);
  assert_int_equal(plan.tokens_count, 1);
  assert_int_equal(plan.tokens[0], 4096);
  assert_int_equal(plan.variants_count, 3);
  assert_true(plan_has_variant(&plan, "masked") && plan_has_variant(&plan, "sorted") &&
              plan_has_variant(&plan, "fused-nvfp4"));
  assert_string_equal(plan.act_quant, "w4a4");
  assert_string_equal(plan.nvfp4_path, "portable");
  assert_string_equal(plan.w13_layout, "packed");
  assert_false(plan.biases);
  assert_int_equal(plan.hidden, 512);
  assert_int_equal(plan.intermediate, 1408);
  assert_int_equal(plan.top_k, 1);
  assert_int_equal(plan.layers, 8);
  assert_int_equal(plan.model_layers, 8);
  assert_int_equal(plan.dtype, SC_CONFIG_FP32);
  assert_string_equal(plan.routing, "router");
  assert_string_equal(plan.activation, "silu");
  assert_true(plan.renormalize);
  assert_int_equal(plan.seed, 0);
  assert_int_equal(plan.forwards, 3);
  assert_false(plan.alpha.set || plan.beta.set || plan.limit.set);
  assert_int_equal(plan_ok(true).forwards, 1);
}

#define MODEL                                                                                                       \
  "model: {name: m, hidden: 64, intermediate: 96, experts: 32, top_k: 4, layers: 10, moe_layers: 9, dtype: bf16,\n" \
  "  activation: swigluoai, alpha: 1.5, w13_layout: interleaved, router: {scoring: softmax, renormalize: false}}\n"

static void a_models_shape_replaces_the_defaults(void **state)
{
  (void)state;
  use_config(MODEL);
  struct plan plan = plan_ok(false);
  assert_int_equal(plan.experts_count, 1);
  assert_int_equal(plan.experts[0], 32);
  assert_int_equal(plan.hidden, 64);
  assert_int_equal(plan.intermediate, 96);
  assert_int_equal(plan.top_k, 4);
  assert_int_equal(plan.layers, 9);
  assert_int_equal(plan.model_layers, 9);
  assert_false(plan.layers_given);
  assert_int_equal(plan.dtype, SC_CONFIG_BF16);
  assert_string_equal(plan.activation, "swigluoai");
  assert_true(plan.alpha.set && plan.alpha.value == 1.5);
  assert_string_equal(plan.w13_layout, "interleaved");
  assert_false(plan.beta.set || plan.limit.set);
  assert_false(plan.renormalize);
}

static void the_command_line_wins_over_run_and_run_over_model(void **state)
{
  (void)state;
  use_config(
      MODEL
      "run: {experts: [8, 16], layers: 5, dtype: fp32, seed: 3, forwards: 2, routing: uniform, variants: [sorted]}\n");
  struct plan plan = plan_ok(false);
  assert_int_equal(plan.experts_count, 2);
  assert_int_equal(plan.layers, 5);
  assert_int_equal(plan.model_layers, 9);
  assert_true(plan.layers_given);
  assert_int_equal(plan.dtype, SC_CONFIG_FP32);
  assert_int_equal(plan.seed, 3);
  assert_int_equal(plan.forwards, 2);
  assert_string_equal(plan.routing, "uniform");
  assert_int_equal(plan.variants_count, 1);
  set(CLI_EXPERTS, "4");
  set(CLI_LAYERS, "2");
  set(CLI_DTYPE, "bf16");
  set(CLI_SEED, "0");
  set(CLI_FORWARDS, "7");
  set(CLI_ROUTING, "router");
  set(CLI_VARIANTS, "masked,fused-nvfp4");
  set(CLI_ACT_QUANT, "w4a16");
  set(CLI_NVFP4_PATH, "native");
  plan = plan_ok(true);
  assert_int_equal(plan.experts_count, 1);
  assert_int_equal(plan.experts[0], 4);
  assert_int_equal(plan.layers, 2);
  assert_int_equal(plan.dtype, SC_CONFIG_BF16);
  assert_int_equal(plan.seed, 0);
  assert_int_equal(plan.forwards, 7);
  assert_string_equal(plan.routing, "router");
  assert_int_equal(plan.variants_count, 2);
  assert_string_equal(plan.act_quant, "w4a16");
  assert_string_equal(plan.nvfp4_path, "native");
}

static void options_of_a_variant_that_does_not_run_are_refused(void **state)
{
  (void)state;
  struct plan plan;
  struct sc_error err = {0};
  set(CLI_VARIANTS, "masked,sorted");
  set(CLI_ACT_QUANT, "w4a16");
  assert_int_equal(settings_plan(&settings, false, &plan, &err), SC_ERR_USAGE);
  assert_non_null(strstr(err.message, "--act-quant is an option of fused-nvfp4"));
  settings.act_quant = NULL;
  set(CLI_NVFP4_PATH, "native");
  assert_int_equal(settings_plan(&settings, false, &plan, &err), SC_ERR_USAGE);
  assert_non_null(strstr(err.message, "--nvfp4-path is an option of fused-nvfp4"));
}

static void an_activation_without_a_gate_has_no_layout(void **state)
{
  (void)state;
  use_config("model: {name: m, hidden: 64, intermediate: 96, experts: 32, top_k: 4, layers: 10, dtype: bf16,\n"
             "  activation: relu2_no_mul, biases: true, router: {scoring: softmax, renormalize: false}}\n");
  struct plan plan = plan_ok(false);
  assert_null(plan.w13_layout);
  assert_false(plan.gated);
  assert_true(plan.biases);
}

static void a_later_option_replaces_an_earlier_one(void **state)
{
  (void)state;
  set(CLI_EXPERTS, "4,8");
  set(CLI_EXPERTS, "16");
  set(CLI_VARIANTS, "masked");
  set(CLI_VARIANTS, "sorted");
  set(CLI_ASSUME_ROUND_TRIP, "1us");
  set(CLI_ASSUME_ROUND_TRIP, "26us,0.116ms");
  assert_int_equal(settings.experts_count, 1);
  assert_int_equal(settings.experts[0], 16);
  assert_string_equal(settings.variants[0], "sorted");
  assert_int_equal(settings.assumed_count, 2);
  assert_true(settings.assumed_us[0] == 26 && fabs(settings.assumed_us[1] - 116) < 1e-9);
  set(CLI_ASSUME_ROUND_TRIP, "26us,116us,0.026ms,26us"); /* each once, in the order given */
  assert_int_equal(settings.assumed_count, 2);
  assert_true(settings.assumed_us[0] == 26 && settings.assumed_us[1] == 116);
}

static void devices_are_parsed(void **state)
{
  (void)state;
  set(CLI_DEVICE, "cuda:3");
  assert_int_equal(settings.device, DEVICE_CUDA);
  assert_int_equal(settings.ordinal, 3);
  set(CLI_DEVICE, "cuda");
  assert_int_equal(settings.ordinal, 0);
  set(CLI_DEVICE, "sim");
  assert_int_equal(settings.device, DEVICE_SIM);
  set(CLI_DEVICE, "auto");
  assert_int_equal(settings.device, DEVICE_AUTO);
}

static void what_fits_runs_and_what_was_asked_for_is_not_cut(void **state)
{
  (void)state;
  struct sc_error err = {0};
  struct plan plan;
  use_config(MODEL);
  set(CLI_VARIANTS, "masked,sorted");
  plan = plan_ok(false);
  assert_int_equal(plan_fit(&plan, 1ull << 40, "the GPU", &err), SC_OK);
  assert_int_equal(plan.layers, 9);
  /* One bf16 layer: 32 x 3 x 64 x 96 x 2 bytes of weights, 32 x 64 x 2 of router, and of 4096 tokens two outputs of
   * 64 x 2 and 4 choices of 4. */
  const uint64_t layer = 32 * 3 * 64 * 96 * 2 + 32 * 64 * 2 + 4096 * (2 * 64 * 2 + 4 * 4);
  const struct sc_config_shape shape = {
      .hidden = 64, .intermediate = 96, .experts = 32, .top_k = 4, .tokens = 4096, .gated = true};
  struct sc_config_memory memory;
  assert_true(sc_config_memory(&shape, &memory));
  assert_int_equal(memory.layer_bytes, layer);
  const uint64_t three_layers = (memory.fixed_bytes + 3 * layer + layer / 2) / 9 * 10;
  plan = plan_ok(false);
  assert_int_equal(plan_fit(&plan, three_layers, "the GPU", &err), SC_OK);
  assert_int_equal(plan.layers, 3);
  assert_int_equal(plan.model_layers, 9);
  set(CLI_LAYERS, "6");
  plan = plan_ok(false);
  assert_int_equal(plan_fit(&plan, three_layers, "the GPU", &err), SC_ERR_LIMIT);
  assert_non_null(strstr(err.message, "3 layers fit (--layers 3)"));
  assert_int_equal(plan_fit(&plan, 1000, "the GPU", &err), SC_ERR_LIMIT);
  assert_non_null(strstr(err.message, "one layer of this shape needs"));
  /* The fused layer's weights take their place beside the others': fewer layers fit. */
  settings.layers = 0;
  set(CLI_VARIANTS, "masked,fused-nvfp4");
  plan = plan_ok(false);
  assert_int_equal(plan_fit(&plan, 8 * three_layers, "the GPU", &err), SC_OK);
  assert_int_equal(plan.layers, 9);
  plan = plan_ok(false);
  assert_int_equal(plan_fit(&plan, 2 * three_layers, "the GPU", &err), SC_OK);
  assert_in_range(plan.layers, 1, 8);
  set(CLI_VARIANTS, "masked,sorted");
  plan = plan_ok(false);
  assert_int_equal(plan_fit(&plan, 2 * three_layers, "the GPU", &err), SC_OK);
  assert_int_equal(plan.layers, 9);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
  const struct CMUnitTest tests[] = {
      TEST(defaults_are_the_seeds_layer),
      TEST(a_models_shape_replaces_the_defaults),
      TEST(the_command_line_wins_over_run_and_run_over_model),
      TEST(options_of_a_variant_that_does_not_run_are_refused),
      TEST(an_activation_without_a_gate_has_no_layout),
      TEST(a_later_option_replaces_an_earlier_one),
      TEST(devices_are_parsed),
      TEST(what_fits_runs_and_what_was_asked_for_is_not_cut),
  };
  return cmocka_run_group_tests_name("cli_settings", tests, NULL, NULL);
}
