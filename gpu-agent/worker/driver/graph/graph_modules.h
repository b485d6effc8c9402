/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules whose kernels graphs have.  NVIDIA's driver follows a node's kernel into its module
 * whatever has become of that, so a module that the app unloads stays until the last graph and
 * executable graph with a kernel of it is gone.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_GRAPH_MODULES_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_GRAPH_MODULES_H

#include "gpu-agent/worker/worker_state.h"

struct worker_graph;

/* The module of FUNCTION, a handle, into the set; false: no memory. */
bool graph_modules_add(struct worker *w, struct graph_modules *set, uint64_t function);
/* All of another set. */
bool graph_modules_add_all(struct graph_modules *set, const struct graph_modules *from);
/* What a graph has, and the graphs inside of it. */
bool graph_modules_add_graph(struct graph_modules *set, const struct worker_graph *graph);
/* It is empty again, and modules that nothing keeps any more go. */
void graph_modules_drop(struct worker *w, struct graph_modules *set);
/* The app unloads the module behind NAME: whether graphs keep it, which unload it then. The
 * name is to go next. */
bool graph_modules_keep(struct name *name);
/* Around what ends a context's graphs: those of its modules that only graphs kept are unloaded
 * behind it, whatever closing waits for. */
void graph_modules_hold(struct worker *w, uint16_t context);
void graph_modules_let(struct worker *w, uint16_t context);

#endif
