/* SPDX-License-Identifier: Apache-2.0
 * The option tables: to getopt_long, to the help text, and back to the command's handler. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define MAX_OPTIONS 64
#define HELP_COLUMN 32

/* getopt_long's forms of a table. ":" first: a missing argument is told apart from an unknown option. */
static void to_getopt(const struct cli_command *command, struct option longs[static MAX_OPTIONS],
                      char shorts[static 2 * MAX_OPTIONS + 3])
{
  const struct cli_option *options = command->options;
  size_t count = 0, letters = 0;
  if (command->takes_program)
    shorts[letters++] = '+';
  shorts[letters++] = ':';
  for (const struct cli_option *option = options; option->id != CLI_END && count + 1 < MAX_OPTIONS; ++option, ++count) {
    longs[count] =
        (struct option){option->name, option->argument ? required_argument : no_argument, NULL, (int)option->id};
    if (option->letter) {
      shorts[letters++] = option->letter;
      if (option->argument)
        shorts[letters++] = ':';
    }
  }
  longs[count] = (struct option){0};
  shorts[letters] = '\0';
}

static const struct cli_option *find_option(const struct cli_option *options, int value)
{
  for (const struct cli_option *option = options; option->id != CLI_END; ++option) {
    if ((int)option->id == value || (option->letter && option->letter == value))
      return option;
  }
  return NULL;
}

/* "--experts" or "-o" as the user typed it, for messages; getopt has stepped past it. */
static int wrong_option(const struct cli_command *command, int kind, char **argv)
{
  const char *typed = argv[optind - 1];
  const struct cli_option *option = find_option(command->options, optopt);
  if (kind == ':' && option)
    return cli_usage(command, "option '--%s' needs a value: --%s %s", option->name, option->name, option->argument);
  if (option) /* a long option without argument that got one */
    return cli_usage(command, "option '--%s' takes no value", option->name);
  if (optopt && optopt < 256)
    return cli_usage(command, "unknown option '-%c'", optopt);
  return cli_usage(command, "unknown option '%s'", typed);
}

int cli_parse(const struct cli_command *command, int argc, char **argv, cli_handler *handle, void *context, int *first,
              bool *done)
{
  struct option longs[MAX_OPTIONS];
  char shorts[2 * MAX_OPTIONS + 3];
  *done = true;
  to_getopt(command, longs, shorts);
  opterr = 0;
  optind = 0; /* glibc: start afresh */
  for (int value; (value = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
    struct sc_error err = {0};
    const struct cli_option *option = value == '?' || value == ':' ? NULL : find_option(command->options, value);
    if (!option)
      return wrong_option(command, value, argv);
    if (option->id == CLI_HELP)
      return cli_print_help(command);
    if (option->id == CLI_VERSION) {
      printf("synccount %s\n", SC_VERSION);
      return CLI_OK;
    }
    if (!handle(context, option->id, optarg, &err))
      return err.status == SC_ERR_USAGE ? cli_usage(command, "--%s: %s", option->name, err.message) : cli_fail(&err);
  }
  *first = optind;
  *done = false;
  return CLI_OK;
}

/* The option's left side, "  -o, --output FILE", padded to the help's column. */
static void print_option(const struct cli_option *option)
{
  struct sc_buf left = {0};
  if (option->letter)
    sc_buf_printf(&left, "  -%c, ", option->letter);
  else
    sc_buf_puts(&left, "      ");
  sc_buf_printf(&left, "--%s", option->name);
  if (option->argument)
    sc_buf_printf(&left, " %s", option->argument);
  printf("%s", left.failed ? option->name : left.data);
  size_t at = left.failed ? strlen(option->name) : left.len;
  if (at + 2 > HELP_COLUMN) {
    putchar('\n');
    at = 0;
  }
  for (const char *line = option->help; *line;) {
    size_t length = strcspn(line, "\n");
    printf("%*s%.*s\n", (int)(HELP_COLUMN - at), "", (int)length, line);
    line += length + (line[length] == '\n');
    at = 0;
  }
  sc_buf_free(&left);
}

static void print_commands(void)
{
  printf("\nCommands:\n");
  const struct cli_command *command;
  for (size_t i = 0; (command = cli_command_at(i)); ++i) {
    if (command->name)
      printf("  %-*s%s\n", HELP_COLUMN - 2, command->name, command->summary);
  }
  printf("\n'synccount help COMMAND' describes a command. Manual pages: synccount(1), and those it names.\n");
}

int cli_print_help(const struct cli_command *command)
{
  printf("Usage: synccount%s%s%s%s%s\n", command->name ? " " : "", command->name ? command->name : "",
         command->options->id != CLI_END ? " [OPTION]..." : "", command->operands ? " " : "",
         command->operands ? command->operands : "");
  if (!command->name)
    printf("       synccount COMMAND [ARGUMENT]...\n");
  printf("\n%s\n", command->summary);
  if (command->description)
    printf("\n%s\n", command->description);
  if (command->options->id != CLI_END)
    printf("\nOptions:\n");
  for (const struct cli_option *option = command->options; option->id != CLI_END; ++option)
    print_option(option);
  if (!command->name)
    print_commands();
  return CLI_OK;
}
