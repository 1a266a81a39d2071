/* SPDX-License-Identifier: Apache-2.0
 * synccount-probe as a program: its options, its exports, and on the simulated device its passes and what they count.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "test_support.h"

static char folder[] = "/tmp/synccount-probe-test-XXXXXX";

/* Runs a shell command; its output, stderr included, in *text (to be freed). The exit status, or 128 + signal. */
static int run(char **text, const char *format, ...) SC_PRINTF(2, 3);
static int run(char **text, const char *format, ...)
{
  char command[4096], chunk[4096];
  struct sc_buf out = {0};
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(command, sizeof command, format, args);
  va_end(args);
  assert_true(length > 0 && (size_t)length < sizeof command);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  for (size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;)
    sc_buf_append(&out, chunk, n);
  const int status = pclose(pipe);
  *text = out.data ? out.data : sc_strdup("");
  assert_non_null(*text);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect(int wanted, const char *needle, int got, char *text)
{
  if (got != wanted || strstr(text, needle) == NULL)
    fail_msg("status %d, wanted %d and \"%s\" in: %s", got, wanted, needle, text);
  free(text);
}

/* ---- without a device ---- */

static void a_bad_option_is_named_with_what_it_takes(void **state)
{
  (void)state;
  static const struct {
    const char *options, *needle;
  } cases[] = {
      {"", "--pass is missing"},
      {"--pass fast", "--pass: \"fast\" is not one of times counts ruler verify"},
      {"--pass times --hidden 0", "--hidden: \"0\" is not a number from 1"},
      {"--pass times --hidden -4", "--hidden: \"-4\""},
      {"--pass times --layers 99999999999999999999", "--layers: \"99999999999999999999\""},
      {"--pass times --experts 4,,8", "--experts"},
      {"--pass times --experts 5000", "--experts"},
      {"--pass times --tokens 0", "--tokens"},
      {"--pass times --tokens 4000000 --top-k 8", "--tokens 4000000 times --top-k 8"},
      {"--pass times --top-k 65", "--top-k: \"65\""},
      {"--pass times --dtype fp16", "--dtype: \"fp16\" is not one of fp32 bf16"},
      {"--pass times --activation gelu9", "--activation: \"gelu9\" is not silu"},
      {"--pass times --activation relu2_no_mul --limit 7", "relu2_no_mul takes no"},
      {"--pass times --limit nan", "--limit: \"nan\""},
      {"--pass times --limit -1", "--limit: \"-1\" is not above 0"},
      {"--pass times --alpha 1e30", "--alpha: \"1e30\""},
      {"--pass times --act-quant w8a8", "--act-quant: \"w8a8\" is not one of w4a4 w4a16"},
      {"--pass times --w13-layout swapped", "--w13-layout: \"swapped\" is not one of interleaved packed"},
      {"--pass times --biases yes", "--biases: \"yes\""},
      {"--pass times --nvfp4-path fast", "--nvfp4-path: \"fast\" is not one of portable native"},
      {"--pass times --renormalize 2", "--renormalize: \"2\""},
      {"--pass times --routing random", "--routing: \"random\" is not one of router uniform skewed one-expert"},
      {"--pass times --seed 9223372036854775808", "--seed: \"9223372036854775808\""},
      {"--pass times --variants masked,fused", "--variants: \"masked,fused\""},
      {"--pass times --variants masked,masked", "--variants: \"masked,masked\""},
      {"--pass times --variants ''", "--variants: \"\""},
      {"--pass times --layers 9 --model-layers 8", "--layers 9 is more than the 8"},
      {"--pass times --samples 5 --blocks 12", "--samples 5 is less than the 12"},
      {"--pass times --bogus", "--bogus is not an option"},
      {"--pass times --layers", "--layers needs a value"},
      {"--pass times --progress=yes", "--progress=yes"},
      {"--pass times extra", "\"extra\" is not an option"},
  };
  for (size_t i = 0; i < SC_COUNTOF(cases); i++) {
    char *text;
    const int status = run(&text, "%s %s 2>&1", PROBE, cases[i].options);
    expect(2, cases[i].needle, status, text);
  }
}

static void help_lists_every_option_and_succeeds(void **state)
{
  (void)state;
  static const char *const options[] = {"--pass",    "--experts", "--fit-layers", "--warmup",
                                        "--routing", "--output",  "Exit status"};
  for (size_t i = 0; i < SC_COUNTOF(options); i++) {
    char *text;
    const int status = run(&text, "%s --help", PROBE);
    expect(0, options[i], status, text);
  }
}

static void no_driver_is_status_3_with_cause_and_remedy_in_the_document_too(void **state)
{
  (void)state;
  char *text;
  if (access("/dev/nvidiactl", F_OK) == 0)
    skip();
  int status = run(&text, "%s --pass counts --output %s/none.json 2>&1", PROBE, folder);
  expect(3, "use the simulated device", status, text);
  status = run(&text, "cat %s/none.json; ls %s", folder, folder);
  assert_null(strstr(text, ".tmp.")); /* nothing is left beside it */
  expect(0, "\"error\":\"cudaGetDeviceCount", status, text);
}

static void only_the_kernel_table_is_exported(void **state)
{
  (void)state;
  char *text;
  /* what is copied from libc (stderr@GLIBC) is no export of ours */
  const int status = run(&text, "nm -D --defined-only %s | grep -v '@' | awk '{print $3}'", PROBE);
  assert_int_equal(status, 0);
#ifndef SANITIZED
  assert_string_equal(text, "simcuda_kernels\n");
#else
  assert_non_null(strstr(text, "simcuda_kernels\n"));
#endif
  free(text);
}

/* RPATH would win over LD_LIBRARY_PATH, and the simulated libraries would not be found. */
static void libraries_are_found_by_runpath(void **state)
{
  (void)state;
  char *text;
  const int status = run(&text, "readelf -d %s", PROBE);
  assert_null(strstr(text, "(RPATH)"));
  expect(0, "(RUNPATH)", status, text);
}

/* ---- on the simulated device ---- */

#define SIMULATED "LD_LIBRARY_PATH=" SIMCUDA " "

static json_t *document(const char *probe, const char *options, int wanted)
{
  char *text, path[256];
  json_error_t error;
  snprintf(path, sizeof path, "%s/document.json", folder);
  const int status = run(&text, SIMULATED "%s %s --output %s 2>&1", probe, options, path);
  if (status != wanted)
    fail_msg("%s %s: status %d, not %d: %s", probe, options, status, wanted, text);
  free(text);
  json_t *json = json_load_file(path, 0, &error);
  if (json == NULL)
    fail_msg("%s: %s", path, error.text);
  return json;
}

static void verify_passes_in_both_types(void **state)
{
  (void)state;
  static const char *const options[] = {
      "--hidden 64 --intermediate 96 --experts 4,16 --top-k 2 --variants masked,sorted",
      "--hidden 68 --intermediate 50 --experts 8 --activation relu2_no_mul --routing skewed --renormalize 0 "
      "--variants masked,sorted",
      "--hidden 61 --intermediate 33 --experts 5 --top-k 5 --activation swigluoai --alpha 1.702 --beta 1 "
      "--limit 7 --routing uniform --variants masked,sorted",
  };
  for (size_t i = 0; i < SC_COUNTOF(options); i++) {
    char *text;
    const int status = run(&text, SIMULATED "%s --verify %s 2>&1", PROBE, options[i]);
    assert_null(strstr(text, "WRONG"));
    assert_non_null(strstr(text, "seed "));
    assert_non_null(strstr(text, "layer sorted             bf16"));
    expect(0, "\nverified\n", status, text);
  }
}

static void verify_takes_a_fresh_seed_unless_one_is_given(void **state)
{
  (void)state;
  char *first, *second;
  assert_int_equal(
      run(&first, SIMULATED "%s --verify --variants sorted --hidden 16 --intermediate 16 --experts 2 | head -1", PROBE),
      0);
  assert_int_equal(run(&second,
                       SIMULATED "%s --verify --variants sorted --hidden 16 --intermediate 16 --experts 2 | head -1",
                       PROBE),
                   0);
  assert_string_not_equal(first, second);
  free(first);
  free(second);
  assert_int_equal(run(&first,
                       SIMULATED
                       "%s --verify --variants sorted --hidden 16 --intermediate 16 --experts 2 --seed 7 | head -1",
                       PROBE),
                   0);
  assert_string_equal(first, "seed 7 (repeat with --seed)\n");
  free(first);
}

/* Every line that the gates must have printed, in either type. */
static void gates_of_the_fused_layer_hold_and_refuse_what_is_wrong(void **state)
{
  (void)state;
  static const char *const quants[] = {"w4a4 ", "w4a16"}, *const types[] = {"fp32", "bf16"};
  static const char *const shapes[] = {"(16,128,512,4,2)", "(16,128,256,8,2)", "(1,128,512,4,2)", "(33,192,320,5,3)",
                                       "(33,80,48,6,2)"};
  static const char *const activations[] = {"silu", "silu with limit", "swigluoai_uninterleave", "swigluoai",
                                            "relu2_no_mul"};
  static const char *const refusals[] = {
      "zeros",
      "gate and up swapped",
      "up not clamped from below",
      "nibbles swapped",
      "scales not swizzled",
      "the GEMM's alpha not applied",
      "the activation's alpha not forwarded",
      "biases left out",
  };
  static const char *const others[] = {
      "\nok     gate B refuses zeros",
      "\nok     two runs give the same bits",
      "\nok     calibration",
      "from interleaved rows: every code and scale is the CPU's",
      "from packed rows: every code and scale is the CPU's",
      "\nok     swigluoai without parameters is SwiGLU",
      "\nok     parameters at their defaults change nothing",
      "\nok     an alpha that is set changes the output",
      "\nok     a beta that is set changes the output",
      "\nok     a limit that is set changes the output",
      "\nok     sc_fp4_quantise_bf16",
      "\nok     sc_fused_align",
      "\nok     layer fused-nvfp4        bf16, 6 experts",
  };
  char *text, line[128];
  const int status = run(&text,
                         SIMULATED "%s --verify --variants masked,fused-nvfp4 --hidden 48 --intermediate 80 "
                                   "--experts 3,6 --top-k 2 2>&1",
                         PROBE);
  assert_null(strstr(text, "WRONG"));
  for (size_t t = 0; t < SC_COUNTOF(types); t++)
    for (size_t q = 0; q < SC_COUNTOF(quants); q++) {
      for (size_t a = 0; a < SC_COUNTOF(activations); a++)
        for (size_t s = 0; s < SC_COUNTOF(shapes) + 2; s++) {
          const bool b = s >= SC_COUNTOF(shapes);
          snprintf(line, sizeof line, "\nok     gate %s %-22s %s %s %s", b ? "B" : "A", activations[a], quants[q],
                   types[t], shapes[b ? s - SC_COUNTOF(shapes) : s]);
          if (strstr(text, line) == NULL)
            fail_msg("no line \"%s\"", line);
        }
      for (size_t r = 0; r < SC_COUNTOF(refusals); r++) {
        snprintf(line, sizeof line, "\nok     gate A refuses %-36s %s %s", refusals[r], quants[q], types[t]);
        if (strstr(text, line) == NULL)
          fail_msg("no line \"%s\"", line);
      }
    }
  for (size_t i = 0; i < SC_COUNTOF(others); i++)
    if (strstr(text, others[i]) == NULL)
      fail_msg("no line \"%s\"", others[i]);
  expect(0, "\nverified\n", status, text);
}

static void a_fused_forward_is_captured_and_replayed_and_the_others_are_refused(void **state)
{
  (void)state;
  static const char *const lines[] = {
      "\nok     capture fused-nvfp4, 5 experts: 3 layers, 21 graph nodes, replayed with the same bits",
      "\nok     capture masked, 5 experts: refused, as it must be: cudaStreamSynchronize",
      "\nok     capture masked, 5 experts: the stream works again, with the same bits",
      "\nok     capture sorted, 5 experts: refused, as it must be: cudaStreamSynchronize",
      "\nok     capture sorted, 5 experts: the stream works again, with the same bits",
  };
  char *text;
  int status = run(&text,
                   SIMULATED "%s --verify --dtype fp32 --act-quant w4a16 --layers 3 --hidden 48 --intermediate 80 "
                             "--experts 5 --routing uniform 2>&1",
                   PROBE);
  for (size_t i = 0; i < SC_COUNTOF(lines); i++)
    if (strstr(text, lines[i]) == NULL)
      fail_msg("no line \"%s\" in %s", lines[i], text);
  expect(0, "\nverified\n", status, text);
  status = run(&text, SIMULATED "%s --verify --dtype fp32 --hidden 48 --intermediate 80 --experts 5 2>&1",
               WRONG "fused-readback");
  assert_non_null(strstr(text, "\nWRONG  capture fused-nvfp4, 5 experts: refused: cudaStreamSynchronize"));
  expect(1, "NOT VERIFIED", status, text);
}

static void the_document_says_how_the_fused_layer_was_quantised(void **state)
{
  (void)state;
  json_t *json = document(PROBE,
                          "--pass counts --layers 1 --hidden 32 --intermediate 48 --experts 4 --tokens 30 --act-quant "
                          "w4a16 --w13-layout interleaved --biases 1",
                          0);
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(json, "runs"), i, item)
  {
    const bool fused = strcmp(json_string_value(json_object_get(item, "variant")), "fused-nvfp4") == 0;
    assert_int_equal(json_is_string(json_object_get(item, "act_quant")), fused);
    assert_int_equal(json_is_string(json_object_get(item, "not_comparable")), fused);
    if (!fused)
      continue;
    assert_string_equal(json_string_value(json_object_get(item, "act_quant")), "w4a16");
    assert_string_equal(json_string_value(json_object_get(item, "w13_layout")), "interleaved");
    assert_string_equal(json_string_value(json_object_get(item, "nvfp4_path")), "portable");
    assert_true(json_is_true(json_object_get(item, "biases")));
    assert_true(json_is_true(json_object_get(json_object_get(item, "verified"), "ok")));
    assert_true(json_is_null(json_object_get(item, "output_matches_masked")));
  }
  assert_int_equal(i, 3);
  json_decref(json);
}

static void a_width_that_nvfp4_cannot_hold_skips_the_fused_layer_alone(void **state)
{
  (void)state;
  json_t *json = document(PROBE, "--pass counts --layers 1 --hidden 40 --intermediate 48 --experts 4 --tokens 30", 0);
  assert_int_equal(json_array_size(json_object_get(json, "runs")), 2);
  json_t *skipped = json_array_get(json_object_get(json, "skipped"), 0);
  assert_string_equal(json_string_value(json_object_get(skipped, "variant")), "fused-nvfp4");
  assert_non_null(strstr(json_string_value(json_object_get(skipped, "reason")), "multiples of 16"));
  json_decref(json);
}

static void the_native_path_is_refused_with_the_device_s_capability(void **state)
{
  (void)state;
  static const char options[] = "--pass counts --layers 1 --hidden 32 --intermediate 48 --experts 4 --tokens 30 "
                                "--nvfp4-path native";
  char *text;
  int status = run(&text, SIMULATED "%s %s 2>&1", PROBE, options);
  assert_non_null(strstr(text, "compute capability 10.0 and 12.0 alone; device 0 ("));
  expect(3, "has 9.0; leave the option out", status, text);
  status = run(&text, SIMULATED "SIMCUDA_CAPABILITY=10.3 %s %s 2>&1", PROBE, options);
  expect(3, "has 10.3; leave the option out", status, text);
  /* Where it fits, it is loaded: the fused layer's kernels come out of the second fatbin. */
  status = run(&text, SIMULATED "SIMCUDA_CAPABILITY=12.0 %s %s 2>&1", PROBE, options);
  expect(0, "\"nvfp4_path\":\"native\"", status, text);
  status = run(&text, "SIMCUDA_FAIL=cudaLibraryLoadData=209@2 " SIMULATED "SIMCUDA_CAPABILITY=10.0 %s %s 2>&1", PROBE,
               options);
  expect(3, "cudaLibraryLoadData", status, text);
}

static void a_wrong_result_is_not_verified_and_not_timed(void **state)
{
  (void)state;
  char *text;
  json_t *json =
      document(WRONG "swapped-gate",
               "--pass times --variants masked,sorted --layers 2 --hidden 32 --intermediate 48 --experts 4 --tokens 40 "
               "--samples 24",
               1);
  size_t i;
  json_t *item, *runs = json_object_get(json, "runs");
  assert_int_equal(json_array_size(runs), 2);
  json_array_foreach(runs, i, item)
  {
    json_t *verified = json_object_get(item, "verified");
    assert_true(json_is_false(json_object_get(verified, "ok")));
    assert_true(json_is_string(json_object_get(verified, "reason")));
    assert_null(json_object_get(item, "forward_us"));
    assert_true(json_is_null(json_object_get(item, "hit")));
  }
  assert_int_equal(json_array_size(json_object_get(json, "controls")), 0);
  json_decref(json);
  const int status =
      run(&text, SIMULATED "%s --verify --variants masked --hidden 32 --intermediate 48 --experts 4 2>&1",
          WRONG "swapped-gate");
  assert_non_null(strstr(text, "\nWRONG  layer masked"));
  expect(1, "NOT VERIFIED", status, text);
}

static void times_document_holds_what_the_protocol_says(void **state)
{
  (void)state;
  static const char *const methods[] = {"launch+readback", "launch",        "readback",
                                        "memcpy-pageable", "memcpy-pinned", "stream-sync-idle",
                                        "event-spin",      "event-block",   "mapped-spin"};
  json_t *json =
      document(PROBE,
               "--pass times --layers 3 --hidden 32 --intermediate 48 --experts 4,8 --tokens 1,90 --samples 130 "
               "--blocks 13 --repeats 7 --warmup 1",
               0);
  json_t *item, *list, *number;
  size_t i, j;
  json_array_foreach(json_object_get(json, "ruler"), i, item)
  {
    json_int_t sum = 0;
    assert_true(i < SC_COUNTOF(methods));
    assert_string_equal(json_string_value(json_object_get(item, "method")), methods[i]);
    assert_int_equal(json_array_size(json_object_get(item, "block_sizes")), 13);
    json_array_foreach(json_object_get(item, "block_sizes"), j, number) sum += json_integer_value(number);
    list = json_object_get(item, "samples_us");
    assert_int_equal(json_array_size(list), sum);
    assert_int_equal(sum, i == 0 ? 130 : 26);
    json_array_foreach(list, j, number) assert_true(json_real_value(number) > 0.0);
  }
  assert_int_equal(i, SC_COUNTOF(methods));
  json_array_foreach(json_object_get(json, "runs"), i, item)
  {
    assert_int_equal(json_array_size(json_object_get(item, "forward_us")), 7);
    assert_int_equal(json_integer_value(json_object_get(item, "forwards")), 7);
    if (strcmp(json_string_value(json_object_get(item, "variant")), "sorted") == 0)
      assert_true(json_is_true(json_object_get(item, "output_matches_masked")));
    else
      assert_true(json_is_null(json_object_get(item, "output_matches_masked")));
  }
  assert_int_equal(i, 12);
  assert_int_equal(json_array_size(json_object_get(json, "controls")), 4);
  json_decref(json);
}

/* 90 tokens hit all of 4 experts: the masked loop has 12 syncs a layer; one token: 6. Three layers. */
static void control_steps_divide_the_masked_count(void **state)
{
  (void)state;
  json_t *json =
      document(PROBE,
               "--pass times --layers 3 --hidden 32 --intermediate 48 --experts 4 --tokens 1,90 --samples 24 "
               "--repeats 3 --warmup 0",
               0);
  static const json_int_t expected[2][4] = {{3, 6, 12, 18}, {3, 12, 24, 36}};
  json_t *item, *step;
  size_t i, j;
  json_array_foreach(json_object_get(json, "controls"), i, item)
  {
    json_array_foreach(json_object_get(item, "steps"), j, step)
    {
      assert_int_equal(json_integer_value(json_object_get(step, "syncs")), expected[i][j]);
      assert_int_equal(json_array_size(json_object_get(step, "forward_us")), 3);
    }
    assert_int_equal(j, 4);
    assert_int_equal(json_array_size(json_object_get(item, "dense_us")), 3);
    assert_int_equal(json_array_size(json_object_get(item, "masked_us")), 3);
  }
  assert_int_equal(i, 2);
  json_decref(json);
}

static void rows_that_are_not_aligned_are_not_comparable(void **state)
{
  (void)state;
  static const char *const shapes[][2] = {{"--dtype bf16 --hidden 36", "--dtype bf16 --hidden 40"},
                                          {"--dtype fp32 --hidden 34", "--dtype fp32 --hidden 36"}};
  for (size_t i = 0; i < 4; i++) {
    char options[256];
    const bool aligned = i % 2 == 1;
    snprintf(options, sizeof options, "--pass counts --layers 1 --intermediate 48 --experts 4 --tokens 30 %s",
             shapes[i / 2][i % 2]);
    json_t *json = document(PROBE, options, 0);
    json_t *sorted = json_array_get(json_object_get(json, "runs"), 1);
    assert_int_equal(json_is_null(json_object_get(sorted, "not_comparable")), aligned);
    assert_int_equal(json_is_true(json_object_get(sorted, "output_matches_masked")), aligned);
    json_decref(json);
  }
}

static void a_point_with_too_few_experts_is_skipped_with_the_reason(void **state)
{
  (void)state;
  char *text;
  json_t *json =
      document(PROBE, "--pass counts --layers 1 --hidden 32 --intermediate 48 --experts 2,4 --tokens 30 --top-k 3", 0);
  assert_int_equal(json_array_size(json_object_get(json, "runs")), 3);
  assert_int_equal(json_array_size(json_object_get(json, "skipped")), 3);
  json_t *skipped = json_array_get(json_object_get(json, "skipped"), 0);
  assert_int_equal(json_integer_value(json_object_get(skipped, "experts")), 2);
  assert_non_null(strstr(json_string_value(json_object_get(skipped, "reason")), "top-3"));
  json_decref(json);
  const int status = run(&text, SIMULATED "%s --pass counts --experts 2 --top-k 3 2>&1", PROBE);
  expect(2, "no point of --experts can run", status, text);
}

static void too_much_memory_is_refused_with_what_would_fit(void **state)
{
  (void)state;
  char *text;
  /* 100 layers of 1 GiB: some fit, all do not */
  int status =
      run(&text,
          SIMULATED "SIMCUDA_MEMORY=8G %s --pass counts --layers 100 --hidden 4096 --intermediate 4096 --experts 5 "
                    "--tokens 16 2>&1",
          PROBE);
  assert_non_null(strstr(text, "need "));
  expect(3, "reduce --layers to ", status, text);
  status = run(&text, SIMULATED "%s --pass counts --layers 2 --hidden 200000 --intermediate 200000 --experts 1024 2>&1",
               PROBE);
  expect(3, "not even one layer fits", status, text);
  /* a layer's three matrices are 12 MiB; cuBLAS's workspace takes 32 of the device's 200 */
  assert_int_equal(setenv("SIMCUDA_MEMORY", "200M", 1), 0);
  json_t *json = document(PROBE,
                          "--pass counts --layers 100 --model-layers 128 --hidden 512 --intermediate 512 --experts 4 "
                          "--tokens 16 --forwards 1 --warmup 0 --fit-layers 1",
                          0);
  unsetenv("SIMCUDA_MEMORY");
  json_t *only = json_array_get(json_object_get(json, "runs"), 0);
  assert_in_range(json_integer_value(json_object_get(only, "layers")), 10, 13);
  assert_int_equal(json_integer_value(json_object_get(only, "model_layers")), 128);
  json_decref(json);
}

static void an_absent_device_is_named(void **state)
{
  (void)state;
  char *text;
  const int status = run(&text, SIMULATED "%s --pass ruler --device 7 2>&1", PROBE);
  expect(3, "there is no CUDA device 7", status, text);
}

static void an_unwritable_document_is_an_error(void **state)
{
  (void)state;
  char *text;
  const int status =
      run(&text, SIMULATED "%s --pass ruler --samples 12 --output %s/no/such/folder/x.json 2>&1", PROBE, folder);
  expect(3, "cannot create", status, text);
}

/* As root, replacing /dev/null or /dev/stdout would succeed. A link stands for them here. */
static void a_document_does_not_replace_what_is_no_file(void **state)
{
  (void)state;
  char *text;
  char *alias = sc_asprintf("%s/link", folder), *target = sc_asprintf("%s/target", folder);
  struct stat info;
  assert_non_null(alias);
  assert_non_null(target);
  assert_int_equal(symlink("target", alias), 0);
  const int status = run(&text, SIMULATED "%s --pass ruler --samples 12 --output %s 2>&1", PROBE, alias);
  expect(0, "", status, text);
  assert_int_equal(lstat(alias, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  json_t *document = json_load_file(target, 0, NULL);
  assert_non_null(document);
  json_decref(document);
  free(target);
  free(alias);
}

/* Whatever call fails: status 3, and a line that names call, place, error and remedy. */
static void every_failing_call_is_named(void **state)
{
  (void)state;
  static const char *const calls[] = {
      "cudaGetDeviceCount",
      "cudaSetDevice",
      "cudaStreamCreateWithFlags",
      "cudaLibraryLoadData",
      "cudaMalloc",
      "cudaMemGetInfo",
      "cudaMemsetAsync",
      "cudaHostAlloc",
      "cudaStreamSynchronize",
      "cudaMemcpyAsync",
      "cudaMemcpy",
      "cudaMemset",
      "cudaHostGetDevicePointer",
      "cudaEventCreateWithFlags",
      "cudaEventRecord",
      "cudaEventSynchronize",
      "cudaGetDeviceProperties",
      "cudaDeviceGetPCIBusId",
      "cudaDriverGetVersion",
      "cudaRuntimeGetVersion",
      "cudaGetDeviceFlags",
  };
  for (size_t i = 0; i < SC_COUNTOF(calls); i++) {
    char *text;
    const int status =
        run(&text,
            "SIMCUDA_FAIL=%s=719@1 " SIMULATED "%s --pass times --layers 1 --hidden 32 --intermediate 48 "
            "--experts 4 --tokens 30 --samples 12 --repeats 1 --output %s/failed.json 2>&1",
            calls[i], PROBE, folder);
    if (strstr(text, "failed at ") == NULL || strchr(text, ';') == NULL)
      fail_msg("%s: %s", calls[i], text);
    expect(3, calls[i], status, text);
  }
}

static void a_failing_launch_names_the_kernel(void **state)
{
  (void)state;
  char *text;
  const int status = run(&text,
                         "SIMCUDA_FAIL=cudaLaunchKernel=719@1 " SIMULATED "%s --pass counts --layers 1 --hidden 32 "
                         "--intermediate 48 --experts 4 --tokens 30 2>&1",
                         PROBE);
  expect(3, "sc_fill_f32 failed at ", status, text);
}

/* Wherever the device disappears, the probe ends with status 3. (Nothing can be given back to a lost device: no leak
 * check.) */
static void a_lost_device_is_status_3(void **state)
{
  (void)state;
  for (unsigned n = 1; n < 400; n = n * 3 / 2 + 1) {
    char *text;
    const int status = run(&text,
                           "ASAN_OPTIONS=detect_leaks=0 SIMCUDA_LOST=%u " SIMULATED
                           "%s --pass times --layers 2 --hidden 32 --intermediate 48 "
                           "--experts 4 --tokens 30 --samples 24 --repeats 2 --output %s/lost.json 2>&1",
                           n, PROBE, folder);
    expect(3, "failed at ", status, text);
  }
}

/* ---- what a forward does, counted by a preloaded library that knows neither tracer nor probe ---- */

struct calls {
  long synchronize, copy, blocking_copy, allocate, release, host_allocate, device_synchronize, launch;
};

static struct calls counted(const char *probe, const char *options, unsigned forwards, json_t **out)
{
  char *text, path[256];
  struct calls c;
  json_error_t error;
  snprintf(path, sizeof path, "%s/calls.json", folder);
  const int status =
      run(&text, SIMULATED "LD_PRELOAD=%s COUNT_CALLS=%s/calls %s --pass counts --forwards %u %s --output %s 2>&1",
          COUNT_CALLS, folder, probe, forwards, options, path);
  if (status != 0)
    fail_msg("%s: %s", options, text);
  free(text);
  assert_int_equal(run(&text, "cat %s/calls", folder), 0);
  const int fields = sscanf(text,
                            "cudaStreamSynchronize %ld cudaMemcpyAsync %ld cudaMemcpy %ld cudaMalloc %ld cudaFree %ld "
                            "cudaHostAlloc %ld cudaDeviceSynchronize %ld cudaLaunchKernel %ld",
                            &c.synchronize, &c.copy, &c.blocking_copy, &c.allocate, &c.release, &c.host_allocate,
                            &c.device_synchronize, &c.launch);
  assert_int_equal(fields, 8);
  free(text);
  *out = json_load_file(path, 0, &error);
  assert_non_null(*out);
  return c;
}

/* One more forward of one variant at one point makes so many more calls; the one synchronise between forwards is not
 * its. */
static struct calls one_forward(const char *probe, const char *options, long *masked_law, long *layers)
{
  json_t *json, *hit;
  size_t i;
  const struct calls few = counted(probe, options, 2, &json);
  json_decref(json);
  const struct calls many = counted(probe, options, 3, &json);
  json_t *only = json_array_get(json_object_get(json, "runs"), 0);
  const long experts = (long)json_integer_value(json_object_get(only, "experts"));
  *masked_law = *layers = 0;
  json_array_foreach(json_object_get(only, "hit"), i, hit)
  {
    *masked_law += experts + 2 * (long)json_integer_value(hit);
    ++*layers;
  }
  json_decref(json);
  return (struct calls){many.synchronize - few.synchronize - 1,
                        many.copy - few.copy,
                        many.blocking_copy - few.blocking_copy,
                        many.allocate - few.allocate,
                        many.release - few.release,
                        many.host_allocate - few.host_allocate,
                        many.device_synchronize - few.device_synchronize,
                        many.launch - few.launch};
}

static const char *const points[] = {
    "--layers 3 --hidden 32 --intermediate 48 --experts 4 --tokens 90",
    "--layers 2 --hidden 32 --intermediate 48 --experts 16 --tokens 1",
    "--layers 2 --hidden 32 --intermediate 48 --experts 8 --tokens 90 --routing one-expert",
    "--layers 2 --hidden 32 --intermediate 48 --experts 16 --tokens 50 --routing skewed --top-k 3 --dtype bf16",
};

static void masked_forward_has_e_plus_two_hit_syncs_and_allocates_nothing(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(points); i++) {
    char options[256];
    long law, layers;
    snprintf(options, sizeof options, "%s --variants masked", points[i]);
    const struct calls c = one_forward(PROBE, options, &law, &layers);
    assert_int_equal(c.synchronize, law);
    assert_int_equal(c.copy, law);
    assert_int_equal(c.blocking_copy + c.allocate + c.release + c.host_allocate + c.device_synchronize, 0);
    assert_true(c.launch > law);
  }
}

static void the_known_counts_of_the_seed(void **state)
{
  (void)state;
  static const struct {
    const char *options;
    long per_layer;
  } cases[] = {
      {"--experts 4 --tokens 256", 12},  {"--experts 8 --tokens 256", 24},
      {"--experts 16 --tokens 512", 48}, {"--experts 8 --tokens 256 --routing one-expert", 10},
      {"--experts 4 --tokens 1", 6},
  };
  for (size_t i = 0; i < SC_COUNTOF(cases); i++) {
    char options[256];
    long law, layers;
    snprintf(options, sizeof options, "--variants masked --layers 2 --hidden 32 --intermediate 48 %s",
             cases[i].options);
    const struct calls c = one_forward(PROBE, options, &law, &layers);
    assert_int_equal(c.synchronize, layers * cases[i].per_layer);
  }
}

static void sorted_forward_has_one_sync_a_layer(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(points); i++) {
    char options[256];
    long law, layers;
    snprintf(options, sizeof options, "%s --variants sorted", points[i]);
    const struct calls c = one_forward(PROBE, options, &law, &layers);
    assert_int_equal(c.synchronize, layers);
    assert_int_equal(c.copy, layers);
    assert_int_equal(c.blocking_copy + c.allocate + c.release + c.host_allocate + c.device_synchronize, 0);
  }
}

static void fused_forward_asks_the_host_nothing(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(points); i++)
    for (int w4a16 = 0; w4a16 <= 1; w4a16++) {
      char options[256];
      long law, layers;
      snprintf(options, sizeof options, "%s --variants fused-nvfp4 --act-quant %s", points[i],
               w4a16 ? "w4a16" : "w4a4");
      const struct calls c = one_forward(PROBE, options, &law, &layers);
      assert_int_equal(c.synchronize + c.copy + c.blocking_copy, 0);
      assert_int_equal(c.allocate + c.release + c.host_allocate + c.device_synchronize, 0);
      assert_true(c.launch >= layers * 6);
    }
}

static void wrong_probes_are_off_by_what_they_are_built_for(void **state)
{
  (void)state;
  long law, layers;
  struct calls c = one_forward(WRONG "extra-any",
                               "--variants masked --layers 2 --hidden 32 --intermediate 48 --experts 4 "
                               "--tokens 90",
                               &law, &layers);
  assert_int_equal(c.synchronize, law + 1);
  c = one_forward(WRONG "missing-sync",
                  "--variants masked --layers 2 --hidden 32 --intermediate 48 --experts 4 --tokens 90", &law, &layers);
  assert_int_equal(c.synchronize, law - 1);
  c = one_forward(WRONG "device-empty",
                  "--variants sorted --layers 2 --hidden 32 --intermediate 48 --experts 4 --tokens 90", &law, &layers);
  assert_int_equal(c.synchronize, layers + 4);
  c = one_forward(WRONG "fused-readback",
                  "--variants fused-nvfp4 --layers 2 --hidden 32 --intermediate 48 --experts 4 --tokens 90", &law,
                  &layers);
  assert_int_equal(c.synchronize, 1);
}

static int make_folder(void **state)
{
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
  char *text;
  (void)state;
  const int status = run(&text, "rm -rf %s", folder);
  free(text);
  return status;
}

int main(void)
{
  const struct CMUnitTest alone[] = {
      cmocka_unit_test(a_bad_option_is_named_with_what_it_takes),
      cmocka_unit_test(help_lists_every_option_and_succeeds),
      cmocka_unit_test(no_driver_is_status_3_with_cause_and_remedy_in_the_document_too),
      cmocka_unit_test(only_the_kernel_table_is_exported),
      cmocka_unit_test(libraries_are_found_by_runpath),
  };
  const struct CMUnitTest simulated[] = {
      cmocka_unit_test(verify_passes_in_both_types),
      cmocka_unit_test(verify_takes_a_fresh_seed_unless_one_is_given),
      cmocka_unit_test(gates_of_the_fused_layer_hold_and_refuse_what_is_wrong),
      cmocka_unit_test(a_fused_forward_is_captured_and_replayed_and_the_others_are_refused),
      cmocka_unit_test(the_document_says_how_the_fused_layer_was_quantised),
      cmocka_unit_test(a_width_that_nvfp4_cannot_hold_skips_the_fused_layer_alone),
      cmocka_unit_test(the_native_path_is_refused_with_the_device_s_capability),
      cmocka_unit_test(a_wrong_result_is_not_verified_and_not_timed),
      cmocka_unit_test(times_document_holds_what_the_protocol_says),
      cmocka_unit_test(control_steps_divide_the_masked_count),
      cmocka_unit_test(rows_that_are_not_aligned_are_not_comparable),
      cmocka_unit_test(a_point_with_too_few_experts_is_skipped_with_the_reason),
      cmocka_unit_test(too_much_memory_is_refused_with_what_would_fit),
      cmocka_unit_test(an_absent_device_is_named),
      cmocka_unit_test(an_unwritable_document_is_an_error),
      cmocka_unit_test(a_document_does_not_replace_what_is_no_file),
      cmocka_unit_test(every_failing_call_is_named),
      cmocka_unit_test(a_failing_launch_names_the_kernel),
      cmocka_unit_test(a_lost_device_is_status_3),
  };
  const struct CMUnitTest counted_tests[] = {
      cmocka_unit_test(masked_forward_has_e_plus_two_hit_syncs_and_allocates_nothing),
      cmocka_unit_test(the_known_counts_of_the_seed),
      cmocka_unit_test(sorted_forward_has_one_sync_a_layer),
      cmocka_unit_test(fused_forward_asks_the_host_nothing),
      cmocka_unit_test(wrong_probes_are_off_by_what_they_are_built_for),
  };
  int failed = cmocka_run_group_tests(alone, make_folder, remove_folder);
  strcpy(folder + strlen(folder) - 6, "XXXXXX");
  failed += cmocka_run_group_tests(simulated, make_folder, remove_folder);
#ifndef SANITIZED /* a sanitizer's run time wants to be the first library, before a preloaded one */
  strcpy(folder + strlen(folder) - 6, "XXXXXX");
  failed += cmocka_run_group_tests(counted_tests, make_folder, remove_folder);
#else
  (void)counted_tests;
#endif
  return failed;
}
