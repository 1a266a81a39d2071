/* SPDX-License-Identifier: Apache-2.0
 * The tally: what single occurrences were made of, and that it never disagrees with the totals. */
#include "analysis/feed.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/tally.h"

static const struct sc_analysis_options with_tally = {.tally = true};

static uint64_t syncs_of(const struct sc_profile *profile)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < profile->part_count; ++i)
    sum += profile->parts[i].count;
  return sum;
}

static size_t range_index(const struct feed *f, const char *path)
{
  for (size_t i = 0; i < f->process->range_count; ++i) {
    if (strcmp(f->process->ranges[i].path, path) == 0)
      return i;
  }
  fail_msg("no range %s", path);
  return SC_NOWHERE;
}

/* The nth profile of a range; NULL past the last. */
static const struct sc_profile *profile_at(const struct feed *f, const char *path, size_t n)
{
  const struct sc_tally *tally = f->process->tally;
  size_t index = range_index(f, path);
  for (size_t i = 0; i < tally->profile_count; ++i) {
    if (tally->profiles[i].range == index && n-- == 0)
      return &tally->profiles[i];
  }
  return NULL;
}

static void layer(struct feed *f, unsigned syncs)
{
  feed_push(f, "", "layer:0");
  for (unsigned i = 0; i < syncs; ++i)
    SYNC(f, S1);
  feed_pop(f, "");
}

static void occurrences_that_are_alike_are_one_profile(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_tally);
  layer(&f, 1);
  layer(&f, 3);
  layer(&f, 1);
  feed_end(&f);
  const struct sc_profile *one = profile_at(&f, "layer:0", 0), *three = profile_at(&f, "layer:0", 1);
  assert_int_equal(one->times, 2);
  assert_int_equal(one->first, 0);
  assert_int_equal(syncs_of(one), 1);
  assert_int_equal(three->times, 1);
  assert_int_equal(three->first, 1);
  assert_int_equal(syncs_of(three), 3);
  assert_null(profile_at(&f, "layer:0", 2));
  feed_close(&f);
}

static void syncs_of_other_sites_are_other_parts(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_tally);
  feed_push(&f, "", "layer:0");
  SYNC(&f, S1);
  MEMCPY_D2H(&f);
  MEMCPY_D2H(&f);
  feed_pop(&f, "");
  feed_end(&f);
  const struct sc_profile *profile = profile_at(&f, "layer:0", 0);
  assert_int_equal(profile->part_count, 2);
  for (size_t i = 0; i < 2; ++i) {
    const struct sc_place *place = &f.process->tally->places[profile->parts[i].place];
    const struct sc_site *site = NULL;
    for (size_t k = 0; k < f.process->site_count; ++k) {
      if (f.process->sites[k].serial == place->site)
        site = &f.process->sites[k];
    }
    assert_non_null(site);
    assert_int_equal(profile->parts[i].count, strcmp(site->api, "cudaMemcpy") == 0 ? 2 : 1);
    assert_int_equal(place->range, range_index(&f, "layer:0"));
    assert_int_equal(place->allow, SC_NOWHERE);
  }
  feed_close(&f);
}

static void an_allowed_range_is_known_of_its_syncs(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_tally);
  feed_push(&f, "", "layer:0");
  feed_push(&f, "", "synccount.allow:logging");
  feed_push(&f, "", "inner");
  SYNC(&f, S1);
  feed_pop(&f, "");
  feed_pop(&f, "");
  feed_start(&f, 7, "", "synccount.allow:spanning");
  SYNC(&f, S1);
  feed_stop(&f, 7);
  feed_pop(&f, "");
  feed_end(&f);
  const struct sc_tally *tally = f.process->tally;
  assert_int_equal(tally->place_count, 2);
  assert_string_equal(f.process->ranges[tally->places[0].allow].name, "synccount.allow:logging");
  assert_string_equal(f.process->ranges[tally->places[0].range].name, "inner");
  assert_string_equal(f.process->ranges[tally->places[1].allow].name, "synccount.allow:spanning");
  feed_close(&f);
}

static void warm_up_goes_by_steps_where_there_are_some(void **state)
{
  struct feed f;
  const struct sc_analysis_options options = {.tally = true, .warmup = 2};
  (void)state;
  feed_open_as(&f, &options);
  for (unsigned step = 0; step < 5; ++step) {
    feed_push(&f, "", "synccount.step");
    layer(&f, step < 2 ? 9 : 1);
    layer(&f, step < 2 ? 9 : 1);
    feed_pop(&f, "");
  }
  feed_end(&f);
  uint64_t times[2] = {0, 0};
  const struct sc_profile *profile;
  for (size_t i = 0; (profile = profile_at(&f, "synccount.step/layer:0", i)) != NULL; ++i) {
    times[profile->warmup] += profile->times;
    assert_int_equal(syncs_of(profile), profile->warmup ? 9 : 1);
  }
  assert_int_equal(times[1], 4);
  assert_int_equal(times[0], 6);
  assert_true(profile_at(&f, "synccount.step", 0)->warmup);
  assert_int_equal(profile_at(&f, "synccount.step", 1)->times, 3);
  assert_false(profile_at(&f, "synccount.step", 1)->warmup);
  assert_false(f.process->tally->warmup_unknown);
  uint64_t warm = 0, counted = 0;
  for (size_t i = 0; i < f.process->tally->place_count; ++i)
    *(f.process->tally->places[i].warmup ? &warm : &counted) += f.process->tally->places[i].count;
  assert_int_equal(warm, 36);
  assert_int_equal(counted, 6);
  feed_close(&f);
}

static void without_steps_the_first_occurrences_are_warm_up(void **state)
{
  struct feed f;
  const struct sc_analysis_options options = {.tally = true, .warmup = 2};
  (void)state;
  feed_open_as(&f, &options);
  for (unsigned i = 0; i < 5; ++i)
    layer(&f, 1);
  feed_end(&f);
  assert_int_equal(profile_at(&f, "layer:0", 0)->times, 2);
  assert_true(profile_at(&f, "layer:0", 0)->warmup);
  assert_int_equal(profile_at(&f, "layer:0", 1)->times, 3);
  assert_false(profile_at(&f, "layer:0", 1)->warmup);
  assert_true(f.process->tally->warmup_unknown); /* of the process as a whole */
  feed_close(&f);
}

static void what_could_not_be_judged_is_known_of_each_occurrence(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_tally);
  layer(&f, 1);
  feed_push(&f, "", "layer:0");
  SYNC(&f, S1);
  D2H_UNKNOWN(&f, S1);
  feed_pop(&f, "");
  feed_end(&f);
  assert_int_equal(profile_at(&f, "layer:0", 0)->uncertain, 0);
  assert_int_equal(profile_at(&f, "layer:0", 1)->uncertain, 1);
  feed_close(&f);
}

static void a_long_range_is_counted_in_bounded_memory(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_tally);
  feed_push(&f, "", "epoch");
  for (unsigned i = 0; i < 30000; ++i)
    layer(&f, i % 3);
  feed_pop(&f, "");
  feed_end(&f);
  const struct sc_profile *epoch = profile_at(&f, "epoch", 0);
  assert_int_equal(syncs_of(epoch), 30000);
  assert_int_equal(epoch->part_count, 1);
  assert_int_equal(profile_at(&f, "epoch/layer:0", 2)->times, 10000);
  feed_close(&f);
}

static void a_range_that_is_still_open_is_told_apart(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_tally);
  feed_push(&f, "", "main");
  SYNC(&f, S1);
  layer(&f, 1);
  feed_end(&f);
  assert_true(profile_at(&f, "main", 0)->unfinished);
  assert_int_equal(syncs_of(profile_at(&f, "main", 0)), 2);
  assert_false(profile_at(&f, "main/layer:0", 0)->unfinished);
  feed_close(&f);
}

static void nobody_asked_nothing_is_kept(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  layer(&f, 1);
  feed_end(&f);
  assert_null(f.process->tally);
  feed_close(&f);
}

/* Whatever ranges a program opens and closes in whatever order: a range's occurrences add up to its total, and their
 * least and most are its minimum and maximum. */
static void check_against_totals(const struct feed *f)
{
  const struct sc_tally *tally = f->process->tally;
  uint64_t places = 0;
  for (size_t i = 0; i < tally->place_count; ++i)
    places += tally->places[i].count;
  assert_int_equal(places, f->process->counts.syncs);
  for (size_t r = 0; r < f->process->range_count; ++r) {
    const struct sc_range_findings *range = &f->process->ranges[r];
    uint64_t times = 0, min = UINT64_MAX, max = 0;
    for (size_t i = 0; i < tally->profile_count; ++i) {
      const struct sc_profile *profile = &tally->profiles[i];
      if (profile->range != r)
        continue;
      uint64_t syncs = syncs_of(profile);
      times += profile->times;
      if (!profile->unfinished) {
        min = syncs < min ? syncs : min;
        max = syncs > max ? syncs : max;
      }
    }
    assert_int_equal(times, range->occurrences);
    if (range->occurrences > range->unfinished) {
      assert_int_equal(min, range->min);
      assert_int_equal(max, range->max);
    }
  }
}

static void it_agrees_with_the_totals_whatever_is_nested(void **state)
{
  static const char *const domains[] = {"", "a"}, *const names[] = {"x", "y", "synccount.allow:z"};
  (void)state;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    struct feed f;
    uint64_t handle = 0;
    srand(seed);
    feed_open_as(&f, &with_tally);
    for (unsigned i = 0; i < 400; ++i) {
      feed_thread(&f, (uint64_t)(rand() % 2));
      switch (rand() % 7) {
      case 0:
      case 1: feed_push(&f, domains[rand() % 2], names[rand() % 3]); break;
      case 2:
      case 3: feed_pop(&f, domains[rand() % 2]); break;
      case 4: feed_start(&f, ++handle, "", names[rand() % 3]); break;
      case 5: feed_stop(&f, (uint64_t)rand() % (handle + 1)); break;
      default:
        SYNC(&f, S1);
        D2H_PAGEABLE(&f, S2);
        SYNC(&f, S2);
        break;
      }
    }
    feed_end(&f);
    check_against_totals(&f);
    feed_close(&f);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(occurrences_that_are_alike_are_one_profile),
      cmocka_unit_test(syncs_of_other_sites_are_other_parts),
      cmocka_unit_test(an_allowed_range_is_known_of_its_syncs),
      cmocka_unit_test(warm_up_goes_by_steps_where_there_are_some),
      cmocka_unit_test(without_steps_the_first_occurrences_are_warm_up),
      cmocka_unit_test(what_could_not_be_judged_is_known_of_each_occurrence),
      cmocka_unit_test(a_long_range_is_counted_in_bounded_memory),
      cmocka_unit_test(a_range_that_is_still_open_is_told_apart),
      cmocka_unit_test(nobody_asked_nothing_is_kept),
      cmocka_unit_test(it_agrees_with_the_totals_whatever_is_nested),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
