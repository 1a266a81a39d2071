/* SPDX-License-Identifier: Apache-2.0
 * What the command line's files share. Only this room prints and exits. */
#ifndef SC_CLI_H
#define SC_CLI_H

#include "base/base.h"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_UNMEASURED = 3 };

/* ---- commands and options: one table feeds getopt_long, --help and the manual page's test -------- */
enum cli_option_id {
  CLI_END = 0,
  CLI_EXPERTS = 256, /* above every letter */
  CLI_VARIANTS,
  CLI_LAYERS,
  CLI_TOKENS,
  CLI_HIDDEN,
  CLI_INTERMEDIATE,
  CLI_TOP_K,
  CLI_DTYPE,
  CLI_ROUTING,
  CLI_ACT_QUANT,
  CLI_NVFP4_PATH,
  CLI_SEED,
  CLI_FORWARDS,
  CLI_CONFIG,
  CLI_DEVICE,
  CLI_SIM_ROUND_TRIP,
  CLI_ASSUME_ROUND_TRIP,
  CLI_PER_EXPERT,
  CLI_FORMAT,
  CLI_OUTPUT,
  CLI_KEEP_TRACES,
  CLI_QUIET,
  CLI_WARMUP,
  CLI_FROM,
  CLI_RANGES,
  CLI_CAPTURE_RANGE,
  CLI_THREADS,
  CLI_STACKS,
  CLI_FOLLOW,
  CLI_NO_FOLLOW,
  CLI_NO_RULER,
  CLI_MAX_TRACE,
  CLI_API,
  CLI_KEEP_GOING,
  CLI_TORCH_MODULES,
  CLI_SECONDS,
  CLI_EXPECT,
  CLI_RANGE,
  CLI_SITE,
  CLI_CLASS,
  CLI_THREAD,
  CLI_RANK,
  CLI_MAX_SYNCS,
  CLI_JUNIT,
  CLI_GITHUB,
  CLI_FAIL_ON_INCREASE,
  CLI_INJECT,
  CLI_HELP,
  CLI_VERSION,
};

struct cli_option {
  enum cli_option_id id;
  char letter;          /* 0: none */
  const char *name;     /* without the dashes */
  const char *argument; /* NULL: takes none */
  const char *help;     /* lines, each at most 70 columns */
};

struct cli_command {
  const char *name;                  /* NULL: the main command, which has no word of its own */
  const char *operands;              /* for the usage line, NULL: none */
  const char *summary;               /* one line */
  const char *description;           /* paragraphs, or NULL */
  const struct cli_option *options;  /* up to CLI_END */
  int (*run)(int argc, char **argv); /* argv[0] is the command's word */
  bool takes_program;                /* options end at the first operand: what follows belongs to that program */
};

/* The commands in order, the main one first; NULL past the last. */
const struct cli_command *cli_command_at(size_t index);
const struct cli_command *cli_command_find(const char *name);
extern const struct cli_command cli_check, cli_diff, cli_main, cli_ruler, cli_run, cli_attach, cli_report, cli_doctor,
    cli_help;

/* Writes the command's help text, the same for `synccount help X` and `synccount X --help`. */
int cli_print_help(const struct cli_command *command);

/* Takes argv's options one after another. handle returns false after it has filled *err. Operands stay in argv from
 * *first on. CLI_OK: go on. *done: --help or --version was served, and the status is the program's. */
typedef bool cli_handler(void *context, enum cli_option_id id, const char *argument, struct sc_error *err);
int cli_parse(const struct cli_command *command, int argc, char **argv, cli_handler *handle, void *context, int *first,
              bool *done);

/* ---- messages: stderr, one write each, "synccount: ..." ------------------------------------------- */
void cli_say(const char *format, ...) SC_PRINTF(1, 2);
/* Prints the error and returns the exit status that DESIGN.md gives its kind. */
int cli_fail(const struct sc_error *err);
/* A usage error: prints the message and names the help command; returns CLI_USAGE. command may be NULL. */
int cli_usage(const struct cli_command *command, const char *format, ...) SC_PRINTF(2, 3);

#endif
