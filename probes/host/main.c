/* SPDX-License-Identifier: Apache-2.0
 * synccount-probe: instrumented MoE layers, an ordinary CUDA program. It knows nothing of tracing; PROTOCOL.md is what
 * `synccount` asks of it. */
#include <stdio.h>
#include <sys/random.h>

#include "host/passes.h"

enum { EXIT_DONE = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_CANNOT = 3 };

/* 63 bits, so that the seed is a JSON integer and can be given back as --seed. */
static enum sc_status fresh_seed(uint64_t *seed, struct sc_error *err)
{
  if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed)
    return sc_error_set(err, SC_ERR_SYSTEM, "getrandom gave no seed; give one with --seed");
  *seed >>= 1;
  return SC_OK;
}

static enum sc_status verify(struct sc_gpu *gpu, struct sc_options *options, bool *ok, struct sc_error *err)
{
  if (!options->seed_given)
    SC_TRY(fresh_seed(&options->seed, err));
  return sc_pass_verify(gpu, options, ok, err);
}

static enum sc_status measure(struct sc_session *session, struct sc_gpu *gpu, const struct sc_options *options,
                              bool *ok, struct sc_error *err)
{
  SC_TRY(sc_session_open(session, gpu, options, err));
  if (options->pass == SC_PASS_TIMES)
    SC_TRY(sc_pass_times(session, err));
  else if (options->pass == SC_PASS_COUNTS)
    SC_TRY(sc_pass_counts(session, err));
  else
    SC_TRY(sc_pass_ruler(session, err));
  *ok = sc_session_verified(session);
  SC_TRY(sc_document_write(options->output, session, options, NULL, err));
  return SC_OK;
}

static void report_unverified(const struct sc_session *session)
{
  for (size_t i = 0; i < session->result_count; i++) {
    const struct sc_result *r = &session->results[i];
    if (!r->skipped[0] && !r->verified.ok)
      fprintf(stderr, "synccount-probe: NOT VERIFIED: %s, %u experts: %s\n", r->variant->name, r->point.experts,
              r->verified.reason);
  }
}

static int run(struct sc_options *options, struct sc_error *err)
{
  struct sc_gpu gpu = {0};
  struct sc_session session = {0};
  const struct sc_variant *variants[SC_MAX_VARIANTS];
  size_t variant_count;
  bool ok = false;
  enum sc_status status =
      sc_variants_parse(options->variants, variants, &variant_count, err); /* before a device is touched */
  if (status == SC_OK)
    status = sc_gpu_open(&gpu, options->device, options->native_fp4, err);
  if (status == SC_OK)
    status =
        options->pass == SC_PASS_VERIFY ? verify(&gpu, options, &ok, err) : measure(&session, &gpu, options, &ok, err);
  if (status == SC_OK && !ok)
    report_unverified(&session);
  if (status != SC_OK && status != SC_ERR_USAGE && options->output != NULL) {
    struct sc_error ignored; /* the first error is the one to tell */
    (void)!sc_document_write(options->output, &session, options, err->message, &ignored);
  }
  sc_session_close(&session);
  sc_gpu_close(&gpu);
  if (status == SC_OK)
    return ok ? EXIT_DONE : EXIT_WRONG;
  return status == SC_ERR_USAGE ? EXIT_USAGE : EXIT_CANNOT;
}

int main(int argc, char **argv)
{
  struct sc_options options;
  struct sc_error err = {0};
  int code = EXIT_USAGE;
  if (sc_options_parse(argc, argv, &options, &err) == SC_OK) {
    if (options.help) {
      sc_options_help();
      code = EXIT_DONE;
    } else {
      code = run(&options, &err);
    }
  }
  if (code == EXIT_USAGE || code == EXIT_CANNOT)
    fprintf(stderr, "synccount-probe: %s\n", err.message);
  sc_options_free(&options);
  return code;
}
