/* SPDX-License-Identifier: Apache-2.0
 * Callback names: for every id of both domains, the stand-in says what the toolkit's own libcupti says. */
#include <cupti.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "test_support.h"

typedef CUptiResult name_function(CUpti_CallbackDomain domain, uint32_t cbid, const char **name);

static void every_id_has_the_name_that_the_real_cupti_gives_it(void **state)
{
  void *real = dlmopen(LM_ID_NEWLM, REAL_CUPTI, RTLD_NOW | RTLD_LOCAL);
  name_function *real_name = real != NULL ? (name_function *)dlsym(real, "cuptiGetCallbackName") : NULL;
  unsigned compared = 0;

  (void)state;
  assert_non_null(dlsym(RTLD_DEFAULT, "simcuda_version")); /* or this would compare the real one with itself */
  if (real_name == NULL)
    fail_msg("%s cannot be used: %s", REAL_CUPTI, dlerror());
  for (int domain = CUPTI_CB_DOMAIN_DRIVER_API; domain <= CUPTI_CB_DOMAIN_RUNTIME_API; domain++)
    for (uint32_t cbid = 0; cbid < 1024; cbid++) {
      const char *expected = NULL, *got = NULL;
      bool known = real_name((CUpti_CallbackDomain)domain, cbid, &expected) == CUPTI_SUCCESS && expected != NULL;
      bool ours = cuptiGetCallbackName((CUpti_CallbackDomain)domain, cbid, &got) == CUPTI_SUCCESS;
      if (known != ours || (known && strcmp(expected, got) != 0))
        fail_msg("domain %d, id %u: the real one says %s, the stand-in %s", domain, cbid, known ? expected : "nothing",
                 ours ? got : "nothing");
      compared += known;
    }
  assert_true(compared > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_id_has_the_name_that_the_real_cupti_gives_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
