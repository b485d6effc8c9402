/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_REPLY_OUTPUT_H
#define VCUDA_GPU_AGENT_WORKER_REPLY_OUTPUT_H

#include <stdbool.h>

struct worker;

/* From then on stdout and stderr are the kernels'; what the process itself has to say goes to
 * where output_log() put it. */
int output_open(struct worker *w);
/* Before anything is opened: our log lines go to a copy of stderr. */
void output_log(void);
/* Tells the app how much there is, where that has grown. */
void output_tell(struct worker *w);

/* Drops the oldest where more is there than a program may leave unread; any thread. */
void output_limit(struct worker *w);

#endif
