/* SPDX-License-Identifier: Apache-2.0
 * synccount help [COMMAND] */
#include <stdio.h>

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
  const struct cli_command *command = cli_command_find(argv[first]);
  return command ? cli_print_help(command) : cli_usage(NULL, "there is no command '%s'", argv[first]);
}

const struct cli_command cli_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Describe synccount or one of its commands.",
    .options = options,
    .run = run,
};
