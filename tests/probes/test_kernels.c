/* SPDX-License-Identifier: Apache-2.0
 * The compiled kernels and the table that stands in for them: every kernel is in both, with the same parameters, and
 * the fatbin holds code for every target asked for. Reads the PTX and the fatbin that the build made: no GPU is needed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/simcuda_kernels.h"
#include "test_support.h"

static char *read_file(const char *path, size_t *size)
{
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    fail_msg("cannot open %s", path);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  const long length = ftell(file);
  assert_true(length > 0);
  rewind(file);
  char *text = malloc((size_t)length + 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)length, file), length);
  text[length] = '\0';
  fclose(file);
  *size = (size_t)length;
  return text;
}

/* `.param .u64 .ptr .align 1 name_param_0,` -> 8; `.param .align 8 .b8 name_param_0[160]` -> 160 */
static unsigned parameter_bytes(const char *type)
{
  const size_t length = strcspn(type, ",\n)");
  const char *bracket = memchr(type, '[', length);
  if (bracket != NULL)
    return (unsigned)strtoul(bracket + 1, NULL, 10);
  const size_t digits = strcspn(type, "0123456789");
  return (unsigned)strtoul(type + digits, NULL, 10) / 8;
}

static const struct simcuda_kernel *find(const char *name, size_t length)
{
  for (const struct simcuda_kernel *k = simcuda_kernels; k->name != NULL; k++)
    if (strlen(k->name) == length && strncmp(k->name, name, length) == 0)
      return k;
  return NULL;
}

static void table_has_every_kernel_with_its_parameters(void **state)
{
  (void)state;
  size_t size, kernels = 0, table = 0;
  char *ptx = read_file(KERNELS_PTX, &size);
  static const char entry[] = ".entry ", parameter[] = ".param .";
  for (const char *at = strstr(ptx, entry); at != NULL; at = strstr(at, entry)) {
    at += sizeof entry - 1;
    const size_t length = strcspn(at, "( \n");
    const struct simcuda_kernel *kernel = find(at, length);
    if (kernel == NULL)
      fail_msg("simcuda_kernels lacks %.*s", (int)length, at);
    const char *end = strchr(at, ')');
    unsigned count = 0;
    assert_non_null(end);
    for (const char *p = strstr(at, parameter); p != NULL && p < end; p = strstr(p, parameter)) {
      p += sizeof parameter - 1;
      if (count >= kernel->arg_count || kernel->arg_bytes[count] != parameter_bytes(p))
        fail_msg("%s: parameter %u has %u bytes in the kernel, %u of %u parameters in the table", kernel->name, count,
                 parameter_bytes(p), count < kernel->arg_count ? kernel->arg_bytes[count] : 0, kernel->arg_count);
      count++;
    }
    assert_int_equal(count, kernel->arg_count);
    kernels++;
  }
  for (const struct simcuda_kernel *k = simcuda_kernels; k->name != NULL; k++, table++)
    assert_non_null(k->run);
  assert_int_equal(kernels, table);
  assert_true(kernels > 20);
  free(ptx);
}

/* The fatbin's container: a header of 16 bytes, then entries with kind (1 PTX, 2 machine code), their header's size,
 * the payload's size, and the compute capability times ten at byte 28. */
struct target {
  unsigned kind, capability;
};

static size_t read_targets(const char *fatbin, size_t size, struct target *targets, size_t max)
{
  uint32_t magic, header, capability;
  uint16_t kind, header_size;
  uint64_t payload;
  size_t count = 0;
  memcpy(&magic, fatbin, 4);
  memcpy(&header_size, fatbin + 6, 2);
  assert_int_equal(magic, 0xba55ed50);
  for (size_t at = header_size; at + 64 <= size && count < max; at += header + payload) {
    memcpy(&kind, fatbin + at, 2);
    memcpy(&header, fatbin + at + 4, 4);
    memcpy(&payload, fatbin + at + 8, 8);
    memcpy(&capability, fatbin + at + 28, 4);
    assert_true(header >= 64 && payload > 0 && payload <= size - at - header);
    targets[count++] = (struct target){kind, capability};
  }
  return count;
}

static bool holds(const struct target *targets, size_t count, unsigned kind, unsigned capability)
{
  for (size_t i = 0; i < count; i++)
    if (targets[i].kind == kind && targets[i].capability == capability)
      return true;
  return false;
}

static void fatbin_holds_every_target_and_ptx_of_the_newest(void **state)
{
  (void)state;
  struct target targets[32];
  size_t size, asked = 0;
  unsigned newest = 0;
  char *fatbin = read_file(KERNELS_FATBIN, &size);
  const size_t count = read_targets(fatbin, size, targets, 32);
  for (const char *at = CUDA_TARGETS; *at; at += *at == ',') {
    newest = (unsigned)strtoul(at, NULL, 10);
    if (!holds(targets, count, 2, newest))
      fail_msg("no machine code for compute capability %u", newest);
    asked++;
    at += strcspn(at, ",");
  }
  assert_true(asked > 0);
  if (!holds(targets, count, 1, newest))
    fail_msg("no PTX for compute capability %u", newest);
  assert_int_equal(count, asked + 1);
  free(fatbin);
}

/* Targets with the a suffix alone have the conversions, and their code runs on no other device: no PTX goes along. */
static void native_fatbin_holds_the_two_targets_that_convert_fp4_themselves(void **state)
{
  (void)state;
  struct target targets[32];
  size_t size;
  char *fatbin = read_file(NATIVE_FATBIN, &size);
  assert_int_equal(read_targets(fatbin, size, targets, 32), 2);
  assert_true(holds(targets, 2, 2, 100) && holds(targets, 2, 2, 120));
  free(fatbin);
}

static unsigned count_of(const char *text, const char *what)
{
  unsigned n = 0;
  for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
    n++;
  return n;
}

/* That the native path is one: the instruction stands in it, and not in the portable kernels. */
static void native_kernels_use_the_device_s_own_conversions(void **state)
{
  (void)state;
  size_t size;
  char *native = read_file(NATIVE_PTX, &size), *portable = read_file(KERNELS_PTX, &size);
  assert_true(count_of(native, "cvt.rn.f16x2.e2m1x2") > 0);
  assert_true(count_of(native, "cvt.rn.satfinite.e2m1x2.f32") > 0);
  assert_int_equal(count_of(portable, ".e2m1x2"), 0);
  free(native);
  free(portable);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table_has_every_kernel_with_its_parameters),
      cmocka_unit_test(fatbin_holds_every_target_and_ptx_of_the_newest),
      cmocka_unit_test(native_fatbin_holds_the_two_targets_that_convert_fp4_themselves),
      cmocka_unit_test(native_kernels_use_the_device_s_own_conversions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
