/* SPDX-License-Identifier: Apache-2.0
 *
 * One key with its value: the file, the environment and the flags all end here, so that a value
 * is checked in one place. options.c says which of them wins.
 */
#ifndef VCUDA_SIDECAR_OPTIONS_OPTIONS_VALUES_H
#define VCUDA_SIDECAR_OPTIONS_OPTIONS_VALUES_H

#include "common/config.h"
#include "common/error.h"
#include "sidecar/options/options.h"

/* Puts ITEM into a struct options. 0, or a negative number with *error, which begins with the
 * key; one that there is not with "unknown key". What a text holds is copied. A config_set. */
int options_set(void *options, const struct config_item *item, struct error *error);

/* The value of `agent`, by whatever name the key goes. */
int options_set_agent(
	struct options *options, const struct config_item *item, struct error *error);

#endif
