/* SPDX-License-Identifier: Apache-2.0
 * synccount: dispatch to a command, and make sure that what it printed was written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct cli_command *const commands[] = {&cli_main,  &cli_ruler, &cli_run,    &cli_attach, &cli_report,
                                                     &cli_check, &cli_diff,  &cli_doctor, &cli_help};

const struct cli_command *cli_command_at(size_t index) { return index < SC_COUNTOF(commands) ? commands[index] : NULL; }

const struct cli_command *cli_command_find(const char *name)
{
  for (size_t i = 0; i < SC_COUNTOF(commands); ++i) {
    if (commands[i]->name && strcmp(commands[i]->name, name) == 0)
      return commands[i];
  }
  return NULL;
}

/* Flushes and closes stdout; a failed write turns a success into CLI_UNMEASURED with a message. */
static int close_stdout(int status)
{
  bool failed = fflush(stdout) != 0 || ferror(stdout);
  int reason = errno;
  if (fclose(stdout) != 0 && !failed) {
    failed = true;
    reason = errno;
  }
  if (failed && reason != EBADF) { /* a caller that closed stdout wants no output */
    cli_say("cannot write to standard output: %s", strerror(reason));
    return status == CLI_OK ? CLI_UNMEASURED : status;
  }
  return status;
}

int main(int argc, char **argv)
{
  const struct cli_command *command = &cli_main;
  if (argc > 1 && argv[1][0] != '-') {
    command = cli_command_find(argv[1]);
    if (!command)
      return cli_usage(NULL, "there is no command '%s'", argv[1]);
    --argc;
    ++argv;
  }
  return close_stdout(command->run(argc, argv));
}
