/* SPDX-License-Identifier: Apache-2.0
 * bench_fused: one layer of a real shape, set up and timed on request, so that a driver can take turns between it and its
 * rivals. Requests are lines on stdin, answers are lines of JSON on stdout; compare.py is the driver. */
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { EXIT_DONE = 0, EXIT_USAGE = 2, EXIT_CANNOT = 3, MAX_TOKENS = 1 << 20, MAX_FORWARDS = 1000000, MAX_WORDS = 5 };

struct bench {
  struct sc_gpu gpu;
  struct bench_point point;
  char *verified_shape; /* path of the last shape whose sorted dispatch was verified */
  uint64_t seed, device;
  bool check, act_fp4, open, simulated;
};

static const char usage[] =
    "usage: bench_fused [--check] [--act-quant w4a16|w4a4] [--seed N] [--device N]\n"
    "Requests, one a line on standard input; each is answered by one line of JSON:\n"
    "  setup CONFIG TOKENS FILE   one layer of a shape (configs/NAME.yaml); the routing drawn goes to FILE\n"
    "  round VARIANT MODE N       fused plain, fused graph or sorted plain: N forwards, time of one\n"
    "  ceilings                   copy, read and bf16 matmul rates of this device\n"
    "  device                     what it is\n"
    "  quit\n"
    "--check: no times, on any device, the simulated one too.\n"
    "Exit status: 0 done, 2 usage, 3 no device or a CUDA call failed.\n";

/* ---- answers ---- */

static bool answer(json_t *object, bool ok)
{
  char *text = ok && object ? json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
  json_decref(object);
  puts(text ? text : "{\"ok\":false,\"error\":\"out of memory\"}");
  free(text);
  return fflush(stdout) == 0;
}

static bool refuse(const struct sc_error *err)
{
  json_t *object = json_object();
  bool ok = true;
  sc_json_put(object, "ok", json_false(), &ok);
  sc_json_put(object, "error", sc_json_text(err->message), &ok);
  return answer(object, ok);
}

static json_t *shape_object(const struct sc_config_model *model, bool *ok)
{
  json_t *shape = json_object();
  sc_json_put(shape, "name", sc_json_text(model->name), ok);
  sc_json_put(shape, "hidden", sc_json_count(model->hidden), ok);
  sc_json_put(shape, "intermediate", sc_json_count(model->intermediate), ok);
  sc_json_put(shape, "experts", sc_json_count(model->experts), ok);
  sc_json_put(shape, "top_k", sc_json_count(model->top_k), ok);
  sc_json_put(shape, "activation", sc_json_text(model->activation), ok);
  sc_json_put(shape, "gated", json_boolean(model->gated), ok);
  sc_json_put(shape, "biases", json_boolean(model->biases), ok);
  sc_json_put(shape, "renormalize", json_boolean(model->router.renormalize), ok);
  return shape;
}

/* What the activation computes with, whether the file gave it or it is the activation's own. No limit is null. */
static json_t *activation_object(const struct sc_activation *activation, bool *ok)
{
  json_t *object = json_object();
  sc_json_put(object, "alpha", json_real(activation->alpha), ok);
  sc_json_put(object, "beta", json_real(activation->beta), ok);
  sc_json_put(object, "limit", isfinite(activation->limit) ? json_real(activation->limit) : json_null(), ok);
  return object;
}

static json_t *verified_object(const struct bench_point *p, bool *ok)
{
  json_t *object = json_object();
  for (int v = 0; v < BENCH_VARIANTS; v++) {
    if (!p->verified[v].measured)
      continue;
    json_t *one = json_object();
    sc_json_put(one, "cosine", json_real(p->verified[v].cosine), ok);
    sc_json_put(one, "rel_error", json_real(p->verified[v].rel_error), ok);
    sc_json_put(object, bench_variant_names[v], one, ok);
  }
  return object;
}

static bool answer_setup(const struct bench *b, const struct sc_config_model *model)
{
  const struct bench_point *p = &b->point;
  const uint64_t tokens = p->point.tokens;
  json_t *object = json_object(), *hit = json_array();
  bool ok = true;
  for (uint32_t i = 0; i < p->slot_count; i++)
    sc_json_push(hit, sc_json_count(p->slots[i].hit), &ok);
  sc_json_put(object, "ok", json_true(), &ok);
  sc_json_put(object, "simulated", json_boolean(b->simulated), &ok);
  sc_json_put(object, "shape", shape_object(model, &ok), &ok);
  sc_json_put(object, "activation", activation_object(&p->options.activation, &ok), &ok);
  sc_json_put(object, "tokens", sc_json_count(tokens), &ok);
  sc_json_put(object, "act_quant", sc_json_text(sc_act_quant_name(p->options.act_fp4)), &ok);
  sc_json_put(object, "slots", sc_json_count(p->slot_count), &ok);
  sc_json_put(object, "copies", sc_json_count(p->copies), &ok);
  sc_json_put(object, "copies_wanted", sc_json_count(p->copies_wanted), &ok);
  sc_json_put(object, "l2_bytes", sc_json_count(p->l2_bytes), &ok);
  sc_json_put(object, "hit", hit, &ok);
  sc_json_put(object, "expert_bytes", sc_json_count(bench_expert_bytes(&p->shape)), &ok);
  sc_json_put(object, "expert_parameters", sc_json_count(bench_expert_parameters(&p->shape)), &ok);
  sc_json_put(object, "activation_bytes", sc_json_count(bench_activation_bytes(&p->shape, tokens)), &ok);
  sc_json_put(object, "flops", sc_json_count(bench_flops(&p->shape, tokens)), &ok);
  sc_json_put(object, "verified", verified_object(p, &ok), &ok);
  return answer(object, ok);
}

/* ---- requests ---- */

static enum sc_status parse_count(const char *what, const char *text, uint64_t max, uint64_t *out, struct sc_error *err)
{
  uint64_t value = 0;
  if (!sc_parse_u64(text, &value) || value < 1 || value > max)
    return sc_error_set(err, SC_ERR_USAGE, "%s: \"%s\" is not a number from 1 to %llu", what, text,
                        (unsigned long long)max);
  *out = value;
  return SC_OK;
}

static enum sc_status set_up(struct bench *b, const char *path, const struct sc_config *config, uint64_t tokens,
                             const char *routing_path, struct sc_error *err)
{
  const bool known = b->verified_shape != NULL && strcmp(b->verified_shape, path) == 0;
  const struct bench_request request = {.model = &config->model,
                                        .tokens = tokens,
                                        .seed = b->seed,
                                        .act_fp4 = b->act_fp4,
                                        .verify_sorted = !known,
                                        .routing_path = routing_path};
  bench_point_close(&b->point);
  b->open = false;
  SC_TRY(bench_point_open(&b->point, &b->gpu, &request, err));
  b->open = true;
  if (!known) {
    free(b->verified_shape);
    b->verified_shape = sc_strdup(path); /* NULL, memory being out: it is verified again */
  }
  return SC_OK;
}

static enum sc_status setup(struct bench *b, char *const words[], bool *written, struct sc_error *err)
{
  struct sc_config *config = NULL;
  uint64_t tokens = 0;
  SC_TRY(parse_count("setup", words[2], MAX_TOKENS, &tokens, err));
  SC_TRY(sc_config_read(words[1], &config, err));
  enum sc_status status = SC_OK;
  if (!config->model.set)
    status = sc_error_set(err, SC_ERR_USAGE, "%s: has no model section; name a shape such as configs/mixtral-8x7b.yaml",
                          words[1]);
  else
    status = set_up(b, words[1], config, tokens, words[3], err);
  if (status == SC_OK)
    *written = answer_setup(b, &config->model);
  sc_config_free(config);
  return status;
}

static enum sc_status time_round(struct bench *b, char *const words[], bool *written, struct sc_error *err)
{
  const bool graph = strcmp(words[2], "graph") == 0;
  uint64_t count = 0;
  double us = 0.0;
  int variant = 0;
  while (variant < BENCH_VARIANTS && strcmp(words[1], bench_variant_names[variant]) != 0)
    variant++;
  if (variant == BENCH_VARIANTS || (!graph && strcmp(words[2], "plain") != 0))
    return sc_error_set(err, SC_ERR_USAGE, "round: \"%s %s\" is not fused or sorted, plain or graph", words[1], words[2]);
  if (graph && variant != BENCH_FUSED)
    return sc_error_set(err, SC_ERR_USAGE, "round: %s reads back inside a forward, so no graph can hold it", words[1]);
  if (!b->open)
    return sc_error_set(err, SC_ERR_USAGE, "round: nothing is set up; send setup first");
  SC_TRY(parse_count("round", words[3], MAX_FORWARDS, &count, err));
  if (count % b->point.slot_count != 0)
    return sc_error_set(err, SC_ERR_USAGE, "round: %llu forwards are not whole turns of %u slots",
                        (unsigned long long)count, b->point.slot_count);
  SC_TRY(bench_round(&b->point, (enum bench_variant)variant, graph, count, &us, err));
  json_t *object = json_object();
  bool ok = true;
  sc_json_put(object, "ok", json_true(), &ok);
  sc_json_put(object, "forwards", sc_json_count(count), &ok);
  sc_json_put(object, "us", b->check ? json_null() : json_real(us), &ok);
  *written = answer(object, ok);
  return SC_OK;
}

static enum sc_status tell_ceilings(struct bench *b, bool *written, struct sc_error *err)
{
  struct bench_ceilings c = {0};
  if (!b->check)
    SC_TRY(bench_measure_ceilings(&b->gpu, &c, err));
  json_t *object = json_object();
  bool ok = true;
  sc_json_put(object, "ok", json_true(), &ok);
  sc_json_put(object, "copy_gbs", b->check ? json_null() : json_real(c.copy_gbs), &ok);
  sc_json_put(object, "read_gbs", b->check ? json_null() : json_real(c.read_gbs), &ok);
  sc_json_put(object, "matmul_tflops", b->check ? json_null() : json_real(c.matmul_tflops), &ok);
  *written = answer(object, ok);
  return SC_OK;
}

static enum sc_status tell_device(struct bench *b, bool *written, struct sc_error *err)
{
  json_t *device = sc_gpu_describe(&b->gpu, err), *object = json_object();
  bool ok = true;
  if (device == NULL) {
    json_decref(object);
    return err->status;
  }
  sc_json_put(object, "ok", json_true(), &ok);
  sc_json_put(object, "simulated", json_boolean(b->simulated), &ok);
  sc_json_put(object, "device", device, &ok);
  *written = answer(object, ok);
  return SC_OK;
}

/* *written: the answer, of whatever kind, was given. */
static enum sc_status serve(struct bench *b, char *const words[], int count, bool *written, struct sc_error *err)
{
  if (strcmp(words[0], "setup") == 0 && count == 4)
    return setup(b, words, written, err);
  if (strcmp(words[0], "round") == 0 && count == 4)
    return time_round(b, words, written, err);
  if (strcmp(words[0], "ceilings") == 0 && count == 1)
    return tell_ceilings(b, written, err);
  if (strcmp(words[0], "device") == 0 && count == 1)
    return tell_device(b, written, err);
  return sc_error_set(err, SC_ERR_USAGE, "\"%s\" with %d words is no request: setup CONFIG TOKENS FILE, round VARIANT MODE "
                      "N, ceilings, device, quit", words[0], count);
}

static int split(char *line, char *words[MAX_WORDS])
{
  int count = 0;
  char *rest = NULL;
  for (char *word = strtok_r(line, " \t\r\n", &rest); word && count < MAX_WORDS; word = strtok_r(NULL, " \t\r\n", &rest))
    words[count++] = word;
  return count;
}

static int serve_all(struct bench *b)
{
  char *line = NULL, *words[MAX_WORDS];
  size_t capacity = 0;
  int code = EXIT_DONE;
  while (getline(&line, &capacity, stdin) > 0) {
    struct sc_error err = {0};
    bool written = true;
    const int count = split(line, words);
    if (count == 0)
      continue;
    if (count == 1 && strcmp(words[0], "quit") == 0)
      break;
    const enum sc_status status = serve(b, words, count, &written, &err);
    if (status != SC_OK)
      written = refuse(&err);
    if (!written || status == SC_ERR_DEVICE) { /* nobody listens, or the context is lost */
      code = EXIT_CANNOT;
      break;
    }
  }
  free(line);
  return code;
}

static enum sc_status open_device(struct bench *b, struct sc_error *err)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  b->simulated = library != NULL && dlsym(library, "simcuda_version") != NULL;
  if (b->simulated && !b->check)
    return sc_error_set(err, SC_ERR_DEVICE,
                        "times of the simulated device say nothing; run on a GPU, or check the setup with --check");
  SC_TRY(sc_gpu_open(&b->gpu, (int)b->device, false, err));
  b->gpu.ranges = false;
  return SC_OK;
}

static bool parse_arguments(struct bench *b, int argc, char **argv)
{
  static const struct option options[] = {{"check", no_argument, NULL, 'c'},
                                          {"act-quant", required_argument, NULL, 'a'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"device", required_argument, NULL, 'd'},
                                          {NULL, 0, NULL, 0}};
  bool good = true;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (option == 'c')
      b->check = true;
    else if (option == 'a' && (strcmp(optarg, "w4a16") == 0 || strcmp(optarg, "w4a4") == 0))
      b->act_fp4 = strcmp(optarg, "w4a4") == 0;
    else if (option == 's')
      good = good && sc_parse_u64(optarg, &b->seed) && b->seed <= INT64_MAX;
    else if (option == 'd')
      good = good && sc_parse_u64(optarg, &b->device) && b->device < 1024;
    else
      good = false;
  }
  return good && optind == argc;
}

int main(int argc, char **argv)
{
  struct bench b = {0};
  struct sc_error err = {0};
  if (!parse_arguments(&b, argc, argv)) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  int code = EXIT_CANNOT;
  if (open_device(&b, &err) == SC_OK)
    code = serve_all(&b);
  else
    fprintf(stderr, "bench_fused: %s\n", err.message);
  bench_point_close(&b.point);
  sc_gpu_close(&b.gpu);
  free(b.verified_shape);
  return code;
}
