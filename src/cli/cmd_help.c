/* SPDX-License-Identifier: Apache-2.0
 * synccount help [COMMAND|environment] */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct cli_option options[] = {
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

static bool no_options(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  (void)context, (void)id, (void)argument, (void)err;
  return false; /* --help is served before */
}

/* ---- help environment ------------------------------------------------------------------------------
 * The same words stand in synccount-environment(7); a test compares them. */

static const struct {
  const char *name, *otherwise, *text; /* lines, each at most 70 columns */
} variables[] = {
    {"SYNCCOUNT_OUTPUT", ".", "folder in which each traced process leaves its trace"},
    {"SYNCCOUNT_QUIET", "0", "1: the tracer says nothing on standard error"},
    {"SYNCCOUNT_STACKS", "python,native", "frames taken at blocking calls: python, native, both, or none"},
    {"SYNCCOUNT_API", "runtime,driver", "whose calls are counted: runtime, driver, or both"},
    {"SYNCCOUNT_DORMANT", "0", "1: nothing is traced until 'synccount attach' says so"},
    {"SYNCCOUNT_FOLLOW", "1", "0: only the process that was started first is traced"},
    {"SYNCCOUNT_FIRST", "unset", "set by the tracer: the number of that process"},
    {"SYNCCOUNT_MAX_TRACE", "no limit", "size from which a process counts without details: 64M"},
    {"SYNCCOUNT_TORCH_MODULES", "unset", "set by run --torch-modules: the library that takes modules' ranges"},
    {"SYNCCOUNT_CUPTI", "searched for", "path of the libcupti to use"},
    {"SYNCCOUNT_JOB", "what the launcher says", "names the job whose ranks share the folder of --keep-traces"},
    {"SYNCCOUNT_PROBE", "beside synccount", "another program in the place of the MoE probe"},
    {"SYNCCOUNT_SYSROOT", "empty", "put in front of /proc, /sys and /dev, for tests"},
};

static int print_environment(void)
{
  printf("Environment variables. A value that makes no sense is named and ignored.\n\n");
  for (size_t i = 0; i < SC_COUNTOF(variables); ++i) {
    printf("  %-24s%s\n", variables[i].name, variables[i].text);
    printf("  %-24sdefault: %s\n", "", variables[i].otherwise);
  }
  return CLI_OK;
}

static int run(int argc, char **argv)
{
  int first;
  bool done;
  int status = cli_parse(&cli_help, argc, argv, no_options, NULL, &first, &done);
  if (done)
    return status;
  if (first == argc)
    return cli_print_help(&cli_main);
  if (argc - first > 1)
    return cli_usage(&cli_help, "one command at a time: '%s' is too much", argv[first + 1]);
  if (strcmp(argv[first], "environment") == 0)
    return print_environment();
  const struct cli_command *command = cli_command_find(argv[first]);
  return command ? cli_print_help(command) : cli_usage(NULL, "there is no command '%s'", argv[first]);
}

const struct cli_command cli_help = {
    .name = "help",
    .operands = "[COMMAND|environment]",
    .summary = "Describe synccount, one of its commands, or its environment.",
    .options = options,
    .run = run,
};
