/* SPDX-License-Identifier: Apache-2.0
 * The frame around a measurement: options, folder, report, and leaving nothing behind. */
#include "cli/bench.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/child.h"
#include "cli/facts.h"
#include "cli/output.h"
#include "trace/trace.h"

/* Chooses the device and tells when that is the simulated one for want of another. */
static enum sc_status choose_device(struct bench *bench, struct sc_error *err)
{
  enum sc_status status = device_choose(&bench->settings, &bench->device, err);
  if (status == SC_OK && bench->device.chosen_for_want && bench->no_silent_simulation)
    return sc_error_set(err, SC_ERR_DEVICE,
                        "this machine has no NVIDIA device, and a gate is not judged on the simulated one unasked: "
                        "give --device sim, or a trace that was taken elsewhere");
  if (status == SC_OK && bench->device.chosen_for_want)
    cli_say("this machine has no NVIDIA device: running on the simulated one (counts are real, times are not)");
  return status;
}

enum sc_status bench_plan(struct bench *bench, struct plan *plan, struct sc_error *err)
{
  enum sc_status status = settings_load_config(&bench->settings, bench->place.configs, err);
  /* The grid is checked before the device is looked for: a mistyped option must not wait for CUDA. */
  if (status == SC_OK)
    status = settings_plan(&bench->settings, false, plan, err);
  if (status == SC_OK)
    status = choose_device(bench, err);
  if (status == SC_OK)
    status = settings_plan(&bench->settings, bench->device.simulated, plan, err);
  if (status == SC_OK && bench->device.has_memory)
    status = plan_fit(plan, bench->device.memory_bytes, bench->device.simulated ? "this machine" : "the GPU", err);
  return status;
}

enum sc_status bench_open_folder(struct bench *bench, struct sc_error *err)
{
  child_hold_signals();
  return folder_open(bench->settings.keep_traces, &bench->folder, err);
}

/* CUPTI's version as the tracer noted it, as a new string; NULL if no trace says it. */
static char *cupti_version(const struct folder *folder)
{
  char **names, *version = NULL;
  size_t count;
  if (folder_names(folder->path, "*" SC_TRACE_SUFFIX, &names, &count, NULL) != SC_OK)
    return NULL;
  for (size_t i = 0; i < count && !version; ++i) {
    char *path = folder_file(folder, names[i]);
    struct sc_reader *reader = NULL;
    struct sc_batch batch;
    bool more;
    if (path && sc_reader_open(path, &reader, NULL) == SC_OK && sc_reader_next(reader, &batch, &more, NULL) == SC_OK)
      version = sc_strdup(sc_reader_meta(reader, "cupti_version")); /* "cupti" is the path of the library */
    sc_reader_close(reader);
    free(path);
  }
  folder_free_names(names, count);
  return version;
}

enum sc_status bench_write_session(const struct passes *passes, enum passes_kind kind, struct sc_findings *notes,
                                   struct sc_error *err)
{
  const struct settings *settings = passes->settings;
  struct document *document = NULL;
  struct document_device device;
  char *path = folder_file(passes->folder, passes_document(kind)), *cupti = cupti_version(passes->folder);
  double *assumed = sc_calloc_array(settings->assumed_count + 1, sizeof *assumed);
  struct session_notes session = {.facts = notes, .assumed_us = assumed, .simulated = passes->device->simulated};
  enum sc_status status = path && assumed ? document_read(path, &document, err) : sc_error_no_memory(err);
  if (status != SC_OK)
    goto cleanup;
  document_device(document, &device);
  const struct facts_input input = {.sysroot = place_sysroot(),
                                    .simulated = passes->device->simulated,
                                    .sim_round_trip_us = passes_sim_round_trip(settings),
                                    .device = &device,
                                    .cupti = cupti};
  status = facts_add(&input, notes, err);
  if (status != SC_OK)
    goto cleanup;
  /* A simulated run has no measured round trip: its floor is for the one that it was told to play. */
  if (passes->device->simulated)
    assumed[session.assumed_count++] = input.sim_round_trip_us;
  for (size_t i = 0; i < settings->assumed_count; ++i)
    assumed[session.assumed_count++] = settings->assumed_us[i];
  status = session_write(passes->folder, &session, err);
cleanup:
  document_free(document);
  free(assumed);
  free(cupti);
  free(path);
  return status;
}

/* Whether counts are too low. Runs are counted by their ranges, which every lost record may have been; of other
 * programs the totals can be whole though details were lost. */
static bool lost_counts(const struct sc_findings *findings)
{
  bool lost = findings->lost_records || findings->lost_chunks;
  for (size_t i = 0; i < findings->process_count && findings->run_count == 0; ++i) {
    if (!sc_process_is_whole(&findings->processes[i]))
      return true;
  }
  return lost && findings->run_count;
}

int bench_verdict(const struct sc_findings *findings, const struct session_outcome *outcome)
{
  int status = CLI_OK;
  if (outcome->nothing) {
    cli_say("nothing could be measured (see the report)");
    return CLI_UNMEASURED;
  }
  if (outcome->unexpected) {
    cli_say("%zu run%s: the count or the output is not what it must be (see the report)", outcome->unexpected,
            outcome->unexpected == 1 ? "" : "s");
    status = CLI_FAILED;
  }
  const bool lost = lost_counts(findings);
  if (outcome->unverified || outcome->uncounted || outcome->skipped || lost) {
    cli_say("not all of it could be measured (see the report): %zu not verified, %zu not counted, %zu skipped%s",
            outcome->unverified, outcome->uncounted, outcome->skipped, lost ? ", records lost" : "");
    status = CLI_UNMEASURED;
  }
  return status;
}

static int finish(struct bench *bench, const struct cli_command *command, enum sc_status status, struct sc_error *err)
{
  /* Files go first: what follows may end this process (a closed pipe, a signal that was held back). */
  folder_close(&bench->folder);
  if (child_interrupted())
    return CLI_UNMEASURED;
  if (status == SC_OK)
    status = output_report(&bench->settings, bench->findings, err);
  if (status == SC_OK)
    return bench_verdict(bench->findings, &bench->outcome);
  return status == SC_ERR_USAGE ? cli_usage(command, "%s", err->message) : cli_fail(err);
}

int bench_command(const struct cli_command *command, int argc, char **argv,
                  enum sc_status (*work)(struct bench *, struct sc_error *))
{
  struct bench bench = {0};
  struct sc_error err = {0};
  int first, result;
  bool done;
  signal(SIGXFSZ, SIG_IGN); /* a file size limit is a failed write with a reason, for the probe too */
  settings_init(&bench.settings);
  result = cli_parse(command, argc, argv, settings_option, &bench.settings, &first, &done);
  if (!done && first < argc) {
    result = cli_usage(command, "'%s' is too much: this command takes options only", argv[first]);
    done = true;
  }
  if (!done && bench.settings.format->programs) {
    result = cli_usage(command, "--format %s tells of traced programs: it is a format of run, attach and report",
                       bench.settings.format->name);
    done = true;
  }
  if (!done) {
    bench.findings = sc_findings_new();
    enum sc_status status = bench.findings ? place_find(&bench.place, &err) : sc_error_no_memory(&err);
    if (status == SC_OK)
      status = output_check(&bench.settings, &err);
    if (status == SC_OK)
      status = work(&bench, &err);
    result = finish(&bench, command, status, &err);
    child_release_signals();
  }
  sc_findings_free(bench.findings);
  place_free(&bench.place);
  settings_free(&bench.settings);
  return result;
}
