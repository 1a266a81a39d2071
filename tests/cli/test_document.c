/* SPDX-License-Identifier: Apache-2.0
 * The probe's documents into findings: both passes into one run, rulers, controls, and nothing that is malformed. */
#include "test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/document.h"

static struct document *document;
static struct sc_findings *findings;

static int fresh(void **state)
{
  (void)state;
  document = NULL;
  findings = sc_findings_new();
  return findings ? 0 : -1;
}

static int done(void **state)
{
  (void)state;
  document_free(document);
  sc_findings_free(findings);
  return 0;
}

static enum sc_status read_text(const char *text, struct sc_error *err)
{
  char path[] = "/tmp/synccount-document-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  document_free(document);
  document = NULL;
  enum sc_status status = document_read(path, &document, err);
  unlink(path);
  return status;
}

static void read_ok(const char *text)
{
  struct sc_error err = {0};
  if (read_text(text, &err) != SC_OK)
    fail_msg("%s", err.message);
}

#define RUN                                                                                                        \
  "\"variant\":\"masked\",\"experts\":4,\"tokens\":64,\"top_k\":1,\"hidden\":32,\"intermediate\":64,\"layers\":2," \
  "\"model_layers\":2,\"dtype\":\"fp32\",\"routing\":\"router\",\"activation\":\"silu\",\"seed\":0,"
#define VERIFIED "\"verified\":{\"ok\":true,\"cosine\":1,\"rel_error\":1e-7,\"tokens\":16,\"reason\":null}"
#define TIMES                                                                                                      \
  "{\"schema\":\"synccount/probe/1\",\"pass\":\"times\",\"runs\":[{" RUN "\"hit\":[4,4],\"forwards\":20," VERIFIED \
  ",\"forward_us\":[30,10,20,40,50],\"output_matches_masked\":null,\"not_comparable\":null}]}"
#define COUNTS                                                                                                     \
  "{\"schema\":\"synccount/probe/1\",\"pass\":\"counts\",\"runs\":[{" RUN "\"hit\":[4,3],\"forwards\":3," VERIFIED \
  ",\"output_matches_masked\":true,\"not_comparable\":null}]}"

static void two_passes_make_one_run(void **state)
{
  (void)state;
  struct sc_error err = {0};
  read_ok(TIMES);
  assert_int_equal(document_add_runs(document, findings, &err), SC_OK);
  assert_int_equal(findings->run_count, 1);
  assert_int_equal(findings->runs[0].forwards, 0); /* traced ones: not known from this pass */
  assert_null(findings->runs[0].hit);
  read_ok(COUNTS);
  assert_int_equal(document_add_runs(document, findings, &err), SC_OK);
  assert_int_equal(findings->run_count, 1);
  const struct sc_run *run = &findings->runs[0];
  assert_true(run->forward_p50_us == 30);
  assert_int_equal(run->forward_samples, 5);
  assert_int_equal(run->forwards, 3);
  assert_int_equal(run->hit[0], 4);
  assert_int_equal(run->hit[1], 3);
  assert_true(run->verified);
  assert_int_equal(run->verified_tokens, 16);
  assert_int_equal(run->output_matches_masked, 1);
}

static void a_run_that_one_pass_did_not_verify_is_not_verified(void **state)
{
  (void)state;
  struct sc_error err = {0};
  read_ok("{\"schema\":\"synccount/probe/1\",\"pass\":\"times\",\"runs\":[{" RUN
          "\"forwards\":20,\"verified\":{\"ok\":false,\"reason\":\"relative error "
          "0.5\"},\"output_matches_masked\":false}]}");
  assert_int_equal(document_add_runs(document, findings, &err), SC_OK);
  read_ok(COUNTS);
  assert_int_equal(document_add_runs(document, findings, &err), SC_OK);
  const struct sc_run *run = &findings->runs[0];
  assert_false(run->verified);
  assert_string_equal(run->not_verified, "relative error 0.5");
  assert_true(isnan(run->forward_p50_us)); /* no times of it */
  assert_int_equal(run->output_matches_masked, 0);
}

static void passes_that_differ_are_not_put_side_by_side(void **state)
{
  (void)state;
  struct sc_error err = {0};
  read_ok(TIMES);
  assert_int_equal(document_add_runs(document, findings, &err), SC_OK);
  char *other = sc_strdup(COUNTS);
  memcpy(strstr(other, "\"hidden\":32"), "\"hidden\":33", 11);
  read_ok(other);
  free(other);
  assert_int_equal(document_add_runs(document, findings, &err), SC_ERR_FORMAT);
  assert_non_null(strstr(err.message, "differs from the other pass"));
}

static void a_ruler_row_has_its_samples_and_blocks(void **state)
{
  (void)state;
  struct sc_error err = {0};
  read_ok("{\"schema\":\"synccount/probe/"
          "1\",\"pass\":\"ruler\",\"ruler\":[{\"method\":\"launch+readback\",\"block_sizes\":[2,3],"
          "\"samples_us\":[1,3,10,20,30]},{\"method\":\"mapped-spin\",\"block_sizes\":[],\"samples_us\":[]}]}");
  assert_int_equal(document_add_ruler(document, findings, &err), SC_OK);
  assert_int_equal(findings->ruler_count, 1); /* a way of waiting that this device has not is absent, not 0 */
  const struct sc_ruler_row *row = &findings->ruler[0];
  assert_string_equal(row->method, "launch+readback");
  assert_int_equal(row->samples, 5);
  assert_int_equal(row->blocks, 2);
  assert_true(row->block_means_us[0] == 2 && row->block_means_us[1] == 20);
  assert_true(row->min_us == 1 && row->p50_us == 10);
}

static void controls_give_the_decomposition_and_the_marginal_cost(void **state)
{
  (void)state;
  struct sc_error err = {0};
  read_ok("{\"schema\":\"synccount/probe/"
          "1\",\"pass\":\"times\",\"controls\":[{\"experts\":4,\"tokens\":64,\"dense_us\":[1,2,3],"
          "\"sorted_us\":[10],\"masked_us\":[],\"steps\":[{\"syncs\":2,\"forward_us\":[110,110]},{\"syncs\":10,"
          "\"forward_us\":[150,150]},"
          "{\"syncs\":18,\"forward_us\":[190,190]}]}]}");
  assert_int_equal(document_add_controls(document, findings, &err), SC_OK);
  const struct sc_control *control = &findings->controls[0];
  assert_true(control->dense_us == 2 && control->sorted_us == 10 && isnan(control->masked_us));
  assert_int_equal(control->step_count, 3);
  assert_int_equal(control->steps[1].syncs, 10);
  assert_true(control->steps[1].p50_us == 150);
  assert_int_equal(findings->marginal_count, 1);
  assert_int_equal(findings->marginal[0].experts, 4);
  assert_true(fabs(findings->marginal[0].mean_us - 5) < 1e-9); /* 40 us over 8 syncs */
}

static void skipped_points_are_counted_and_told(void **state)
{
  (void)state;
  struct sc_error err = {0};
  size_t count = 0;
  read_ok("{\"schema\":\"synccount/probe/"
          "1\",\"pass\":\"times\",\"skipped\":[{\"variant\":\"masked\",\"experts\":16,\"tokens\":1,"
          "\"reason\":\"out of memory\"}]}");
  assert_int_equal(document_add_skipped(document, findings, &count, &err), SC_OK);
  assert_int_equal(count, 1);
  assert_int_equal(findings->warning_count, 1);
  assert_non_null(strstr(findings->warnings[0], "masked, E = 16, 1 tokens: out of memory"));
}

static void what_could_not_be_measured_is_warned_of(void **state)
{
  (void)state;
  struct sc_error err = {0};
  read_ok("{\"schema\":\"synccount/probe/1\"}");
  assert_int_equal(document_add_warnings(document, findings, &err), SC_OK);
  assert_int_equal(findings->warning_count, 0);
  read_ok("{\"schema\":\"synccount/probe/1\",\"warnings\":[\"ruler row mapped-spin: no answer within 1 s\"]}");
  assert_int_equal(document_add_warnings(document, findings, &err), SC_OK);
  assert_int_equal(findings->warning_count, 1);
  assert_string_equal(findings->warnings[0], "not measured: ruler row mapped-spin: no answer within 1 s");
}

static void what_the_device_does_not_say_is_absent(void **state)
{
  (void)state;
  struct document_device device;
  read_ok("{\"schema\":\"synccount/probe/"
          "1\",\"device\":{\"name\":\"X\",\"driver_version\":13000,\"mig\":true,\"ordinal\":2,\"l2_bytes\":-1}}");
  document_device(document, &device);
  assert_string_equal(device.name, "X");
  assert_null(device.pci_bus_id);
  assert_int_equal(device.driver_version, 13000);
  assert_int_equal(device.l2_bytes, 0);
  assert_true(device.has_mig && device.mig);
  assert_false(device.has_integrated);
  assert_true(device.has_ordinal);
  assert_int_equal(device.ordinal, 2);
}

typedef enum sc_status add_function(const struct document *, struct sc_findings *, struct sc_error *);

static void malformed_documents_are_refused(void **state)
{
  (void)state;
  static const struct {
    add_function *add;
    const char *body;
  } cases[] = {
      {document_add_runs, "\"runs\":{}"},
      {document_add_runs, "\"runs\":[3]"},
      {document_add_runs, "\"runs\":[{\"variant\":\"masked\"}]"},
      {document_add_runs, "\"pass\":\"counts\",\"runs\":[{" RUN "\"forwards\":3,\"hit\":[4]," VERIFIED "}]"},
      {document_add_runs, "\"pass\":\"counts\",\"runs\":[{" RUN "\"forwards\":3,\"hit\":[4,5]," VERIFIED "}]"},
      {document_add_runs, "\"pass\":\"counts\",\"runs\":[{" RUN "\"forwards\":3,\"hit\":[4,-1]," VERIFIED "}]"},
      {document_add_runs, "\"runs\":[{" RUN "\"forwards\":3}]"},
      {document_add_runs, "\"runs\":[{" RUN "\"forwards\":3,\"forward_us\":[\"x\"]," VERIFIED "}]"},
      {document_add_runs, "\"runs\":[{" RUN "\"forwards\":3,\"forward_us\":[-1]," VERIFIED "}]"},
      {document_add_ruler, "\"ruler\":1"},
      {document_add_ruler, "\"ruler\":[{\"samples_us\":[1]}]"},
      {document_add_ruler, "\"ruler\":[{\"method\":\"x\",\"samples_us\":[1,2],\"block_sizes\":[3]}]"},
      {document_add_ruler, "\"ruler\":[{\"method\":\"x\",\"samples_us\":[1,2],\"block_sizes\":[1]}]"},
      {document_add_ruler, "\"ruler\":[{\"method\":\"x\",\"samples_us\":[1,2],\"block_sizes\":[2,-1,1]}]"},
      {document_add_ruler,
       "\"ruler\":[{\"method\":\"x\",\"samples_us\":[1,2],\"block_sizes\":[4611686018427387904,4611686018427387904]}]"},
      {document_add_warnings, "\"warnings\":{}"},
      {document_add_warnings, "\"warnings\":[1]"},
      {document_add_controls, "\"controls\":[{}]"},
      {document_add_controls, "\"controls\":[{\"experts\":4,\"tokens\":1,\"steps\":[{\"syncs\":-1}]}]"},
      {document_add_controls, "\"controls\":[{\"experts\":4,\"tokens\":1,\"steps\":3}]"},
      {document_add_controls, "\"controls\":[{\"experts\":4,\"tokens\":1,\"dense_us\":[null]}]"},
  };
  for (size_t i = 0; i < SC_COUNTOF(cases); ++i) {
    struct sc_error err = {0};
    struct sc_findings *into = sc_findings_new();
    char text[1024];
    snprintf(text, sizeof text, "{\"schema\":\"synccount/probe/1\",%s}", cases[i].body);
    read_ok(text);
    enum sc_status status = cases[i].add(document, into, &err);
    if (status != SC_ERR_FORMAT)
      fail_msg("case %zu: status %d for %s", i, (int)status, text);
    sc_findings_free(into);
  }
}

static void other_files_are_no_documents(void **state)
{
  (void)state;
  struct sc_error err = {0};
  assert_int_equal(read_text("{", &err), SC_ERR_FORMAT);
  assert_int_equal(read_text("[]", &err), SC_ERR_VERSION);
  assert_int_equal(read_text("{\"schema\":\"synccount/probe/2\"}", &err), SC_ERR_VERSION);
  assert_non_null(strstr(err.message, "synccount/probe/2"));
  assert_int_equal(read_text("{\"schema\":\"synccount/probe/1\",\"a\":1,\"a\":2}", &err), SC_ERR_FORMAT);
  assert_int_equal(document_read("/nonexistent", &document, &err), SC_ERR_IO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
  const struct CMUnitTest tests[] = {
      TEST(two_passes_make_one_run),
      TEST(a_run_that_one_pass_did_not_verify_is_not_verified),
      TEST(passes_that_differ_are_not_put_side_by_side),
      TEST(a_ruler_row_has_its_samples_and_blocks),
      TEST(controls_give_the_decomposition_and_the_marginal_cost),
      TEST(skipped_points_are_counted_and_told),
      TEST(what_could_not_be_measured_is_warned_of),
      TEST(what_the_device_does_not_say_is_absent),
      TEST(malformed_documents_are_refused),
      TEST(other_files_are_no_documents),
  };
  return cmocka_run_group_tests_name("cli_document", tests, NULL, NULL);
}
