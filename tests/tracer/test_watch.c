/* SPDX-License-Identifier: Apache-2.0
 * Every id that CUPTI knows, against the table: classified, with a layout, under the right domain. */
#include "harness.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"
#include "tracer/layout.h"
#include "tracer/watch.h"

static int (*name_of)(int domain, uint32_t cbid, const char **name);
static struct sc_watch_table table;

static int begin(void **state) {
  static const char *const paths[] = { "libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
                                       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so" };
  const char *given = getenv("SC_TEST_CUPTI"); /* another version's names can be tried by hand */
  void *handle = given != NULL ? dlopen(given, RTLD_NOW) : NULL;
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(paths) && handle == NULL; i++)
    handle = dlopen(paths[i], RTLD_NOW);
  if (handle != NULL)
    *(void **)&name_of = dlsym(handle, "cuptiGetCallbackName");
  return name_of != NULL && sc_watch_build(&table, name_of, SC_WATCH_BOTH) ? 0 : -1;
}

/* The domains' ids overlap, and a domain's ids pass 511. */
static void test_table_holds_every_id_of_both_domains(void **state) {
  (void)state;
  for (int domain = 1; domain <= 2; domain++) {
    uint32_t highest = 0;
    for (uint32_t cbid = 1; cbid < 4000; cbid++) {
      const char *name = NULL;
      struct sc_watch expected;
      if (name_of(domain, cbid, &name) != 0 || name == NULL)
        continue;
      highest = cbid;
      sc_watch_classify((uint8_t)domain, name, &expected);
      const struct sc_watch *watch = sc_watch_find(&table, (unsigned)domain, cbid);
      assert_non_null(watch);
      if (watch->op != expected.op || watch->action != expected.action || watch->layout != expected.layout ||
          watch->domain != domain)
        fail_msg("%s (domain %d, id %u) has another call's row", name, domain, cbid);
    }
    assert_true(highest > 480);
    assert_null(sc_watch_find(&table, (unsigned)domain, 1000000));
  }
  assert_null(sc_watch_find(&table, 3, UINT32_MAX));
}

static void test_every_name_that_matters_is_classified(void **state) {
  (void)state;
  unsigned wrong = 0;
  for (int domain = 1; domain <= 2; domain++)
    for (uint32_t cbid = 1; cbid < table.count[domain]; cbid++) {
      const char *name = NULL;
      if (name_of(domain, cbid, &name) != 0 || name == NULL || !sc_call_needs_class(name))
        continue;
      if (sc_watch_find(&table, (unsigned)domain, cbid)->op == SC_OP_NONE) {
        print_error("not classified: %s\n", name);
        wrong++;
      }
    }
  assert_int_equal(wrong, 0);
}

/* What blocks, copies, polls, frees or follows memory needs its arguments. Listed: names without a struct in CUPTI's
 * headers, of entry points that no 64-bit program can call. */
static bool may_lack_layout(const char *name) {
  static const char *const gone[] = { "cu64",       "cuMemcpy2D",      "cuMemcpy2DUnaligned", "cuMemcpy2DAsync",
                                      "cuMemcpy3D", "cuMemcpy3DAsync", "cuMemAlloc",          "cuMemAllocPitch",
                                      "cuMemcpy_v2" };
  if (strncmp(name, "cu64", 4) == 0)
    return true;
  for (size_t i = 1; i < SC_COUNTOF(gone); i++)
    if (strcmp(name, gone[i]) == 0)
      return true;
  return strstr(name, "Array") != NULL &&
         strstr(name, "alloc") != NULL; /* mipmapped: a handle whose element size no copy needs */
}

static void test_every_call_whose_arguments_count_has_a_layout(void **state) {
  (void)state;
  unsigned wrong = 0;
  for (int domain = 1; domain <= 2; domain++)
    for (uint32_t cbid = 1; cbid < table.count[domain]; cbid++) {
      const char *name = NULL;
      const struct sc_watch *watch = sc_watch_find(&table, (unsigned)domain, cbid);
      if (name_of(domain, cbid, &name) != 0 || name == NULL)
        continue;
      bool counts = (watch->op >= SC_OP_SYNC_STREAM && watch->op <= SC_OP_REGISTER && watch->op != SC_OP_SYNC_DEVICE) ||
                    watch->op == SC_OP_HOST_FUNC || watch->op == SC_OP_PREFETCH || watch->op == SC_OP_EVENT_RECORD;
      if (counts && watch->layout == NULL && !may_lack_layout(name)) {
        print_error("no layout: %s (%s)\n", name, sc_op_name((enum sc_op)watch->op));
        wrong++;
      }
    }
  assert_int_equal(wrong, 0);
}

/* A row whose name no CUPTI has is dead. Rows of other toolkits' names are few and known. */
static void test_every_layout_is_used(void **state) {
  (void)state;
  static const char *const others[] = { "cudaMemPrefetchAsync_v2_v12020", "cudaMemPrefetchAsync_v2_ptsz_v12020" };
  size_t count;
  unsigned wrong = 0;
  const struct sc_layout *layouts = sc_layout_all(&count);
  if (getenv("SC_TEST_CUPTI") != NULL)
    skip();
  for (size_t i = 0; i < count; i++) {
    bool used = strcmp(layouts[i].name, others[0]) == 0 || strcmp(layouts[i].name, others[1]) == 0;
    for (uint32_t cbid = 0; !used && cbid < table.count[layouts[i].domain]; cbid++)
      used = table.of_domain[layouts[i].domain][cbid].layout == &layouts[i];
    if (!used) {
      print_error("row without a call: %s\n", layouts[i].name);
      wrong++;
    }
    for (size_t k = i + 1; k < count; k++)
      if (layouts[k].domain == layouts[i].domain && strcmp(layouts[k].name, layouts[i].name) == 0)
        fail_msg("two rows for %s", layouts[i].name);
  }
  assert_int_equal(wrong, 0);
}

static void test_versions_of_one_name_have_their_own_layouts(void **state) {
  (void)state;
  const struct sc_layout *old = sc_layout_find(SC_DOMAIN_DRIVER, "cuMemcpyDtoH"),
                         *new = sc_layout_find(SC_DOMAIN_DRIVER, "cuMemcpyDtoH_v2");
  assert_int_equal(old->bytes.size, 4);
  assert_int_equal(new->bytes.size, 8);
  old = sc_layout_find(SC_DOMAIN_RUNTIME, "cudaMemcpyBatchAsync_v12080");
  new = sc_layout_find(SC_DOMAIN_RUNTIME, "cudaMemcpyBatchAsync_v13000");
  assert_true(old->stream.offset != new->stream.offset);
  assert_null(sc_layout_find(SC_DOMAIN_RUNTIME, "cuMemcpyDtoH_v2"));
}

static void test_unknown_version_is_watched_without_arguments(void **state) {
  (void)state;
  struct sc_watch watch;
  sc_watch_classify(SC_DOMAIN_RUNTIME, "cudaMemcpyAsync_ptsz_v99000", &watch);
  assert_int_equal(watch.action, SC_ACTION_RECORD);
  assert_int_equal(watch.op, SC_OP_COPY_ASYNC);
  assert_true(watch.per_thread);
  assert_null(watch.layout);
  sc_watch_classify(SC_DOMAIN_RUNTIME, "cudaMalloc_v99000", &watch); /* gives out pointers that we do not know */
  assert_int_equal(watch.role, SC_ROLE_IMPORT);
  sc_watch_classify(SC_DOMAIN_RUNTIME, "cudaGetDeviceCount_v3020", &watch);
  assert_int_equal(watch.action, SC_ACTION_NONE);
}

/* CUPTI with a gap in its ids, and one that knows nothing. */
static int gap_name(int domain, uint32_t cbid, const char **name) {
  if (domain != SC_DOMAIN_RUNTIME || (cbid != 3 && cbid != 50))
    return 1;
  *name = cbid == 3 ? "cudaFree_v3020" : "cudaDeviceSynchronize_v3020";
  return 0;
}
static int no_name(int domain, uint32_t cbid, const char **name) {
  (void)domain, (void)cbid, (void)name;
  return 1;
}

static void test_gaps_in_the_ids_are_crossed(void **state) {
  (void)state;
  struct sc_watch_table gaps;
  assert_true(sc_watch_build(&gaps, gap_name, SC_WATCH_BOTH));
  assert_int_equal(sc_watch_find(&gaps, SC_DOMAIN_RUNTIME, 3)->op, SC_OP_FREE);
  assert_int_equal(sc_watch_find(&gaps, SC_DOMAIN_RUNTIME, 50)->op, SC_OP_SYNC_DEVICE);
  assert_int_equal(sc_watch_find(&gaps, SC_DOMAIN_RUNTIME, 4)->action, SC_ACTION_NONE);
  free(gaps.of_domain[SC_DOMAIN_RUNTIME]);
  assert_false(sc_watch_build(&gaps, no_name, SC_WATCH_BOTH));
}

/* Of one API alone: the other's calls are not recorded, and what is known of memory is not lost. */
static void test_one_api_alone(void **state) {
  static struct sc_watch_table runtime, driver;
  (void)state;
  assert_true(sc_watch_build(&runtime, name_of, SC_WATCH_RUNTIME));
  assert_true(sc_watch_build(&driver, name_of, SC_WATCH_DRIVER));
  unsigned recorded[2] = { 0 }, launches = 0, followed = 0;
  for (uint32_t cbid = 0; cbid < runtime.count[SC_DOMAIN_RUNTIME]; cbid++) {
    recorded[0] += runtime.of_domain[SC_DOMAIN_RUNTIME][cbid].action == SC_ACTION_RECORD;
    launches += runtime.of_domain[SC_DOMAIN_RUNTIME][cbid].action == SC_ACTION_LAUNCH;
  }
  for (uint32_t cbid = 0; cbid < runtime.count[SC_DOMAIN_DRIVER]; cbid++) {
    uint8_t action = runtime.of_domain[SC_DOMAIN_DRIVER][cbid].action;
    assert_true(action == SC_ACTION_NONE || action == SC_ACTION_FOLLOW);
    followed += action == SC_ACTION_FOLLOW;
  }
  for (uint32_t cbid = 0; cbid < driver.count[SC_DOMAIN_RUNTIME]; cbid++)
    assert_int_equal(driver.of_domain[SC_DOMAIN_RUNTIME][cbid].action, SC_ACTION_NONE);
  for (uint32_t cbid = 0; cbid < driver.count[SC_DOMAIN_DRIVER]; cbid++)
    recorded[1] += driver.of_domain[SC_DOMAIN_DRIVER][cbid].action == SC_ACTION_RECORD;
  assert_true(recorded[0] > 50 && recorded[1] > 50 && launches >= 4 && followed > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table_holds_every_id_of_both_domains),
    cmocka_unit_test(test_every_name_that_matters_is_classified),
    cmocka_unit_test(test_every_call_whose_arguments_count_has_a_layout),
    cmocka_unit_test(test_every_layout_is_used),
    cmocka_unit_test(test_versions_of_one_name_have_their_own_layouts),
    cmocka_unit_test(test_unknown_version_is_watched_without_arguments),
    cmocka_unit_test(test_gaps_in_the_ids_are_crossed),
    cmocka_unit_test(test_one_api_alone),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
