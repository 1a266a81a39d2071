/* SPDX-License-Identifier: Apache-2.0
 * The decoders of Python's line tables, on tables that each version made for the same function, and on nonsense. */
#include "test_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracer/python.h"

static const struct {
  enum sc_python_lines format;
  uint32_t first_line;
  size_t size, units;
  uint8_t table[256];
  uint32_t lines[256]; /* of the code at 0, 2, 4... bytes; 0: it has none */
} cases[] = {
  /* Python 3.9 */
  { SC_PYTHON_LNOTAB, 2, 28, 31, { 0, 2, 6, 1, 2, 255, 6, 3, 4, 1, 2, 2, 2, 254, 4, 3, 2, 1, 2, 1, 2, 255, 8,
    2, 12, 1, 6, 1 }, { 4, 4, 4, 5, 4, 4, 4, 7, 7, 8, 10, 8, 8, 11, 12, 13, 12, 12, 12, 12, 14, 14, 14, 14, 14,
    14, 15, 15, 15, 16, 16 } },
  /* Python 3.10 */
  { SC_PYTHON_LINETABLE, 2, 30, 28, { 6, 2, 2, 1, 6, 255, 4, 3, 2, 1, 2, 2, 4, 254, 2, 3, 2, 1, 2, 1, 4, 255,
    12, 2, 2, 1, 4, 1, 2, 254 }, { 4, 4, 4, 5, 4, 4, 4, 7, 7, 8, 10, 8, 8, 11, 12, 13, 12, 12, 14, 14, 14, 14,
    14, 14, 15, 16, 16, 14 } },
  /* Python 3.11 */
  { SC_PYTHON_LOCATIONS, 2, 121, 53, { 128, 0, 240, 4, 1, 9, 21, 240, 0, 1, 9, 21, 216, 18, 19, 240, 3, 1, 9,
    21, 241, 0, 1, 9, 21, 244, 0, 1, 9, 21, 128, 65, 240, 6, 0, 8, 9, 240, 0, 3, 5, 19, 216, 16, 17, 224, 16, 17,
    240, 5, 2, 16, 19, 240, 0, 2, 9, 19, 240, 6, 4, 5, 13, 221, 14, 24, 216, 12, 13, 241, 3, 1, 15, 15, 244, 0,
    1, 15, 15, 240, 0, 1, 9, 15, 248, 229, 11, 21, 240, 0, 1, 5, 13, 240, 0, 1, 5, 13, 240, 0, 1, 5, 13, 216, 8,
    12, 136, 4, 240, 3, 1, 5, 13, 248, 248, 248, 224, 11, 15, 136, 52 }, { 2, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    7, 7, 8, 10, 8, 8, 11, 12, 12, 12, 12, 12, 12, 13, 12, 12, 12, 12, 12, 12, 12, 12, 0, 14, 14, 14, 14, 14, 14,
    14, 14, 14, 15, 15, 14, 0, 0, 0, 16, 16 } },
  /* Python 3.12 */
  { SC_PYTHON_LOCATIONS, 2, 103, 54, { 128, 0, 240, 6, 0, 19, 20, 246, 3, 1, 9, 21, 216, 13, 14, 242, 3, 0,
    10, 11, 240, 0, 1, 9, 21, 128, 65, 240, 0, 1, 9, 21, 241, 6, 0, 8, 9, 216, 16, 17, 224, 16, 17, 240, 5, 2,
    16, 19, 240, 0, 2, 9, 19, 240, 6, 4, 5, 13, 220, 14, 24, 216, 12, 13, 243, 3, 1, 15, 15, 240, 0, 1, 9, 15,
    249, 242, 17, 1, 9, 21, 248, 244, 20, 0, 12, 22, 242, 0, 1, 5, 13, 216, 8, 12, 216, 11, 15, 240, 5, 1, 5, 13,
    250 }, { 2, 5, 4, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 7, 7, 8, 10, 8, 8, 11, 12, 12, 12, 12, 12, 13, 12,
    12, 12, 12, 12, 0, 0, 4, 4, 4, 0, 14, 14, 14, 14, 14, 14, 14, 14, 15, 16, 14, 0, 0, 0 } },
  /* Python 3.13 */
  { SC_PYTHON_LOCATIONS, 2, 106, 62, { 128, 0, 241, 6, 0, 19, 20, 243, 3, 1, 9, 21, 217, 18, 19, 136, 81,
    243, 3, 0, 10, 11, 217, 18, 19, 240, 3, 0, 5, 6, 240, 0, 1, 9, 21, 246, 6, 0, 8, 9, 216, 16, 17, 224, 16, 17,
    240, 5, 2, 16, 19, 240, 0, 2, 9, 19, 240, 6, 4, 5, 13, 220, 14, 24, 216, 12, 13, 243, 3, 1, 15, 15, 240, 0,
    1, 9, 15, 249, 242, 17, 1, 9, 21, 248, 244, 20, 0, 12, 22, 243, 0, 1, 5, 13, 216, 8, 12, 216, 11, 15, 240, 5,
    1, 5, 13, 250 }, { 2, 5, 5, 4, 4, 4, 4, 5, 5, 5, 4, 4, 4, 4, 5, 5, 4, 4, 7, 7, 7, 7, 7, 7, 7, 8, 10, 8, 8,
    11, 12, 12, 12, 12, 12, 13, 12, 12, 12, 12, 12, 0, 0, 4, 4, 4, 0, 14, 14, 14, 14, 14, 14, 14, 14, 14, 15, 16,
    14, 0, 0, 0 } },
};

static void every_instruction_has_the_line_that_python_says(void **state) {
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(cases); i++)
    for (size_t unit = 0; unit < cases[i].units; unit++) {
      uint32_t line = sc_python_line_of(cases[i].format, cases[i].table, cases[i].size, cases[i].first_line,
                                        (int64_t)unit * 2);
      if (line != cases[i].lines[unit])
        fail_msg("case %zu, byte %zu: line %u instead of %u", i, unit * 2, line, cases[i].lines[unit]);
    }
}

static void a_frame_that_has_not_begun_is_at_its_functions_first_line(void **state) {
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(cases); i++)
    assert_int_equal(sc_python_line_of(cases[i].format, cases[i].table, cases[i].size, 7, -1), 7);
}

static void damaged_tables_end(void **state) {
  uint8_t table[64];
  (void)state;
  srand(1);
  for (int round = 0; round < 20000; round++) {
    size_t size = (size_t)rand() % sizeof(table);
    for (size_t i = 0; i < size; i++)
      table[i] = (uint8_t)rand();
    /* What comes out means nothing: reading must stay inside, which sanitizers watch. */
    uint8_t *exact = malloc(size + 1);
    assert_non_null(exact);
    memcpy(exact, table, size);
    for (int format = SC_PYTHON_LNOTAB; format <= SC_PYTHON_LOCATIONS; format++)
      (void)sc_python_line_of((enum sc_python_lines)format, exact, size, 1, rand() % 500);
    free(exact);
  }
}

static void without_an_interpreter_nothing_happens(void **state) {
  struct sc_python_frame frames[SC_STACK_PYTHON_MAX];
  uint64_t hash = 1;
  uint32_t flags = 0;
  (void)state;
  sc_python_prepare();
  assert_int_equal(sc_python_state(), SC_PYTHON_ABSENT);
  assert_int_equal(sc_python_take(frames, &hash, &flags), 0);
  assert_int_equal(flags, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_instruction_has_the_line_that_python_says),
    cmocka_unit_test(a_frame_that_has_not_begun_is_at_its_functions_first_line),
    cmocka_unit_test(damaged_tables_end),
    cmocka_unit_test(without_an_interpreter_nothing_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
