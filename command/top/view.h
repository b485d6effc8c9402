/* SPDX-License-Identifier: Apache-2.0
 *
 * What `vcuda top` shows: an agent's GPUs and sessions, with what changed since the last look.
 */
#ifndef VCUDA_COMMAND_TOP_VIEW_H
#define VCUDA_COMMAND_TOP_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "command/http.h"
#include "common/error.h"

#define VIEW_GPUS 16
#define VIEW_SESSIONS 4096 /* as many as an agent serves */

struct view_gpu {
	char name[64];
	double total, used, leased; /* bytes */
	int busy;		    /* percent; -1: not known */
};

struct view_session {
	char id[33], state[12], tenant[32], pod[64], program[32], error[64];
	double pid, started, used, launches;
	double received, sent;	   /* bytes so far */
	double rate_in, rate_out;  /* bytes a second since the last look */
	double gpu_seconds, share; /* of the GPU; share in percent since then, -1: not known */
};

enum view_order {
	ORDER_SHARE,
	ORDER_MEMORY,
	ORDER_RECEIVED,
	ORDER_SENT,
	ORDER_LAUNCHES,
	ORDER_TIME,
	ORDER_POD,
	ORDERS
};

struct view {
	char host[256];
	uint16_t port;
	char token[HTTP_TOKEN];
	char driver[128], why[128];
	bool ready;
	double taken; /* s, CLOCK_MONOTONIC; 0: never */
	int gpu_count, count, before_count;
	struct view_gpu gpus[VIEW_GPUS];
	struct view_session *sessions, *before; /* VIEW_SESSIONS each */
	enum view_order order;
	bool reverse;
};

/* AGENT: HOST[:PORT] of its control port; TOKEN_FILE as http_token has it. */
int view_open(
	struct view *view, const char *agent, const char *token_file, struct error *error);
void view_close(struct view *view);
/* Asks the agent; takes 5 s for each of its pages at most. 0, or -errno with *error and the
 * view as it was. */
int view_take(struct view *view, struct error *error);
void view_sort(struct view *view);

/* One line for a person; NULL: the headings. */
void view_line(const struct view_session *session, char *line, size_t n);
void view_gpu_line(const struct view_gpu *gpu, int index, char *line, size_t n);
void view_title(const struct view *view, char *line, size_t n);
const char *view_order_name(enum view_order order);

#endif
