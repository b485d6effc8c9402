/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of `vcuda`; each gets the arguments from its own name on and returns an exit
 * status: 0, 1 where something failed, 2 for wrong usage.
 */
#ifndef VCUDA_COMMAND_COMMAND_H
#define VCUDA_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

int command_run(int argc, char **argv);
int command_status(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_attach(void); /* `doctor --attach`: see attach.c */
int command_peer(int argc, char **argv);
int command_preload(int argc, char **argv);
int command_smi(int argc, char **argv);
int command_stats(int argc, char **argv);
int command_tensors(int argc, char **argv);
int command_weights(int argc, char **argv);
int command_top(int argc, char **argv);
/* Where the command is named ptxas: `vcuda run --software` makes that name. */
int command_ptxas(int argc, char **argv);

/* What LD_PRELOAD has to name, ':' between. -errno with *error naming the library that is
 * missing. */
#define PRELOAD_MAX 16384
int preload_list(char *list, size_t n, struct error *error);
/* The legacy' forms: vcuda -n native …, vcuda -role server|client …. */
int command_legacy(int argc, char **argv);

/* VERB --help: prints it, and there is nothing else to do. */
bool command_helped(int argc, char **argv, const char *usage);
/* "vcuda: TEXT" on stderr; returns STATUS. */
int command_complain(const struct error *error, int status);

#endif
