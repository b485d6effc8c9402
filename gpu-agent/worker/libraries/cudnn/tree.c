/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads trees of the graph API: see backend.h.  The bytes are an app's; nothing of them is
 * believed.
 */
#include <openssl/evp.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cudnn/backend.h"

/* Digest of the node's words, with the digests of the nodes it names behind them: a number in a
 * tree means nothing in another. */
void cudnn_graph_digest(const struct graph_tree *tree, struct graph_node *n)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint32_t head = n->type | (uint32_t)n->attributes << 16;

	memset(n->digest, 0, sizeof(n->digest));
	if (!context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL))
		goto out;
	EVP_DigestUpdate(context, &head, sizeof(head));
	for (const uint32_t *at = n->first; at < n->end;) {
		uint32_t type = at[0] >> 16;
		uint32_t words = cudnn_attribute_words(type, at[1]);
		static const unsigned char none[32];

		EVP_DigestUpdate(context, at, 8);
		at += 2;
		if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
			EVP_DigestUpdate(context, at, 4 * (size_t)words);
		else
			for (uint32_t i = 0; i < words; i++)
				EVP_DigestUpdate(context,
					at[i] ? tree->node[at[i] - 1].digest : none, 32);
		at += words;
	}
	EVP_DigestFinal_ex(context, n->digest, NULL);
out:
	EVP_MD_CTX_free(context);
}

/* One attribute; the words behind it, or NULL where it is no good. */
static const uint32_t *graph_check(
	const uint32_t *at, const uint32_t *end, uint32_t nodes_before)
{
	uint32_t type, words;

	if (end - at < 2)
		return NULL;
	type = at[0] >> 16;
	words = cudnn_attribute_words(type, at[1]);
	if (words > (size_t)(end - at - 2))
		return NULL;
	if (type == CUDNN_TYPE_HANDLE && at[1] != 1)
		return NULL;
	/* Addresses stand in variant packs, which are no part of a tree. */
	if (type == CUDNN_TYPE_VOID_PTR)
		return NULL;
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (uint32_t i = 0; i < words; i++)
			if (at[2 + i] > nodes_before)
				return NULL;
	return at + 2 + words;
}

bool cudnn_graph_read(struct graph_tree *tree, const void *bytes, uint32_t count)
{
	const uint32_t *at = bytes;
	const uint32_t *end = at + count / 4;

	tree->nodes = 0;
	if (count % 4 || count < 8 || count > CUDNN_TREE_BYTES || !at[0] ||
		at[0] > CUDNN_TREE_NODES)
		return false;
	for (uint32_t left = *at++; left; left--) {
		struct graph_node *n = &tree->node[tree->nodes];

		if (at == end)
			return false;
		n->type = (uint16_t)*at;
		n->attributes = (uint16_t)(*at++ >> 16);
		n->first = at;
		if (n->attributes > CUDNN_TREE_ATTRIBUTES ||
			n->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
			return false;
		for (uint32_t i = 0; i < n->attributes; i++) {
			at = graph_check(at, end, tree->nodes);
			if (!at)
				return false;
		}
		n->end = at;
		cudnn_graph_digest(tree, n);
		tree->nodes++;
	}
	return at == end;
}

const struct graph_node *cudnn_graph_named(
	const struct graph_tree *tree, const struct graph_node *n, uint32_t name)
{
	for (const uint32_t *at = n->first; at < n->end;
		at += 2 + cudnn_attribute_words(at[0] >> 16, at[1]))
		if (at[0] == (name | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16) && at[1] == 1 &&
			at[2])
			return &tree->node[at[2] - 1];
	return NULL;
}
