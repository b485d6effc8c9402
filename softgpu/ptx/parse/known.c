/* SPDX-License-Identifier: Apache-2.0
 *
 * What PTX has and the interpreter does not serve.  A kernel that holds it still loads, and its
 * launch is refused; what PTX does not have either is an error in the text.
 */
#include <stdlib.h>

#include "softgpu/ptx/parse/build.h"

/* Sorted. */
static const char *const opcodes[] = {"clusterlaunchcontrol", "multimem", "tcgen05", "wgmma"};

/* How the names of special registers begin. */
static const char *const registers[] = {"%aggr_smem_size", "%clock", "%cluster", "%ctaid",
	"%nctaid", "%ntid", "%tid", "%current_graph_exec", "%envreg", "%globaltimer", "%gridid",
	"%is_explicit_cluster", "%nclusterid", "%pm", "%reserved_smem_", "%total_smem_size"};

static int by_name(const void *key, const void *row)
{
	const struct ptx_word *word = key;
	const char *name = *(const char *const *)row;
	int order = strncmp(word->p, name, word->n);

	return order ? order : -(int)(strlen(name) > word->n);
}

bool ptx_known_opcode(struct ptx_word word)
{
	/* NVIDIA's own, of which nothing is written. */
	return word.p[0] == '_' || bsearch(&word, opcodes, sizeof(opcodes) / sizeof(opcodes[0]),
					   sizeof(opcodes[0]), by_name);
}

bool ptx_known_register(struct ptx_word word)
{
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		size_t n = strlen(registers[i]);

		if (word.n >= n && !memcmp(word.p, registers[i], n))
			return true;
	}
	return false;
}

bool ptx_known_modifier(const char *mod)
{
	unsigned long bits;
	char *end;

	/* Letters and words come with each version; a type of numbers is one of these sizes. */
	if ((mod[0] != 'b' && mod[0] != 's' && mod[0] != 'u' && mod[0] != 'f') ||
		mod[1] < '0' || mod[1] > '9')
		return true;
	bits = strtoul(mod + 1, &end, 10);
	if (*end)
		return true;
	return bits == 1 || bits == 2 || bits == 4 || bits == 6 || bits == 8 || bits == 16 ||
	       bits == 32 || bits == 64 || bits == 128 || bits == 256 || bits == 1024;
}
