/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks that the agent is in, as the supervisor sees them: what lies in networks_folder
 * comes and goes while it runs, and for each network a process of its own keeps its entry in
 * the network's directory, so that none waits for another's Redis or has another's password.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_NETWORK_TABLE_H
#define VCUDA_GPU_AGENT_SUPERVISOR_NETWORK_TABLE_H

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/error.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/network.h"

struct supervisor;

/* Of the network in the same place of config->networks. */
struct network_place {
	int fd;	   /* to its process; -1: there is none */
	pid_t pid; /* 0: none */
	uint64_t started, delay;
	uint64_t start_at;	      /* when to start it; UINT64_MAX: there is one */
	struct network_report report; /* name "": the front said nothing yet */
	bool entered;		      /* its process: the entry is there */
	char text[160];		      /* why not */
	struct stat token;	      /* the token file when it was read */
	char file[NAME_MAX + 1];      /* of the folder; "": it has none */
	int64_t file_ns;	      /* when that was written */
};

/* A file of the folder that is no network of this agent's. */
struct network_refused {
	char file[NAME_MAX + 1];
	int64_t file_ns;
	char text[sizeof(((struct error *)0)->text)];
};

struct network_table {
	struct network_place at[AGENT_NETWORKS];
	struct network_refused refused[AGENT_NETWORKS];
	uint32_t refused_count;
	struct network_ending {
		pid_t pid;
		uint64_t kill_at;
	} ending[AGENT_NETWORKS]; /* processes that leave their directory */
	int lock;		  /* of the folder; -1: none */
	int watch;		  /* inotify's, of the folder; -1: none */
	uint64_t look_at, tokens_at;
	uint64_t seen; /* the folder's files, when they were read */
	bool changed;  /* since people were told (network_state.c) */
};

/* Takes the folder, where there is one, and reads it. -errno with *error. */
int network_table_open(struct supervisor *s, struct error *error);
/* The folder is looked at, processes are started and ended; the next time to look. */
uint64_t network_table_tick(struct supervisor *s, uint64_t now);
/* Looks at once, whatever seems to be as it was (SIGHUP). */
void network_table_look_again(struct supervisor *s);
/* Fills P, which has NETWORK_TABLE_POLL places, and returns how many; then what came. */
#define NETWORK_TABLE_POLL (AGENT_NETWORKS + 1)
nfds_t network_table_poll(const struct supervisor *s, struct pollfd *p);
void network_table_hear(struct supervisor *s, const struct pollfd *p, nfds_t count);
/* What the front says (CONTROL_NETWORK); takes FD. */
void network_table_report(struct supervisor *s, int fd);
/* Whether the process was one of these. */
bool network_table_reaped(struct supervisor *s, pid_t pid);
/* Before the supervisor becomes another binary: their entries stay. */
void network_table_kill(struct supervisor *s);
/* At the end: each leaves its directory, within a second. */
void network_table_close(struct supervisor *s);

/* The place of that name; -1: there is none. */
int network_table_find(const struct agent_config *config, const char *name);
/* One with nothing in it. */
struct network_place network_table_place(void);

/* --- network_folder.c --- */
/* Reads the folder where it is another than it was. */
void network_folder_look(struct supervisor *s);
void network_folder_path(
	const struct supervisor *s, const char *name, char path[AGENT_PATH * 2]);

/* --- network_process.c --- */
void network_process_start(struct supervisor *s, uint32_t index, uint64_t now);
/* It leaves the directory and ends. */
void network_process_end(struct supervisor *s, uint32_t index);
void network_process_tell(struct supervisor *s, uint32_t index);
void network_process_hear(struct supervisor *s, uint32_t index);

/* --- network_state.c --- */
/* FOLDER/agent.json, which `vcuda peer` reads. */
void network_state_write(struct supervisor *s);
void network_state_remove(const struct agent_config *config);

#endif
