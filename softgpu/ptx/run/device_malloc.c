/* SPDX-License-Identifier: Apache-2.0
 *
 * The heap of device malloc: first fit, with the book-keeping outside of the memory that it
 * hands out, where no kernel can reach it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

#define ALIGN 16

struct piece {
	struct piece *next; /* by address */
	uint64_t at, size;
	bool taken;
	const char *text; /* that it holds for good */
};

struct ptx_heap {
	pthread_mutex_t lock;
	struct piece *first;
	atomic_bool used;
};

bool ptx_module_heap_used(const struct ptx_module *module)
{
	return module->heap && atomic_load(&module->heap->used);
}

struct ptx_heap *ptx_heap_new(uint64_t base, uint64_t size)
{
	struct ptx_heap *heap = calloc(1, sizeof(*heap));
	struct piece *piece = calloc(1, sizeof(*piece));

	if (!heap || !piece) {
		free(heap);
		free(piece);
		return NULL;
	}
	pthread_mutex_init(&heap->lock, NULL);
	*piece = (struct piece){.at = base, .size = size};
	heap->first = piece;
	return heap;
}

void ptx_heap_drop(struct ptx_heap *heap)
{
	struct piece *next;

	if (!heap)
		return;
	for (struct piece *piece = heap->first; piece; piece = next) {
		next = piece->next;
		free(piece);
	}
	pthread_mutex_destroy(&heap->lock);
	free(heap);
}

uint64_t ptx_heap_alloc(struct ptx_heap *heap, uint64_t size)
{
	uint64_t at = 0;

	if (!heap || size > UINT64_MAX - ALIGN)
		return 0;
	atomic_store(&heap->used, true);
	size = size ? (size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1) : ALIGN;
	pthread_mutex_lock(&heap->lock);
	for (struct piece *piece = heap->first; piece; piece = piece->next) {
		struct piece *rest;

		if (piece->taken || piece->size < size)
			continue;
		rest = piece->size > size ? malloc(sizeof(*rest)) : NULL;
		if (rest) {
			*rest = (struct piece){
				piece->next, piece->at + size, piece->size - size, false, NULL};
			piece->next = rest;
			piece->size = size;
		}
		piece->taken = true;
		at = piece->at;
		break;
	}
	pthread_mutex_unlock(&heap->lock);
	return at;
}

uint64_t ptx_heap_text(struct ptx_heap *heap, const char *text)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	uint64_t at = 0;

	if (!heap)
		return 0;
	pthread_mutex_lock(&making);
	pthread_mutex_lock(&heap->lock);
	for (const struct piece *piece = heap->first; piece; piece = piece->next)
		if (piece->text == text)
			at = piece->at;
	pthread_mutex_unlock(&heap->lock);
	if (!at && (at = ptx_heap_alloc(heap, strlen(text) + 1))) {
		memcpy((void *)(uintptr_t)at, text, strlen(text) + 1);
		pthread_mutex_lock(&heap->lock);
		for (struct piece *piece = heap->first; piece; piece = piece->next)
			if (piece->at == at)
				piece->text = text;
		pthread_mutex_unlock(&heap->lock);
	}
	pthread_mutex_unlock(&making);
	return at;
}

uint64_t ptx_heap_size(struct ptx_heap *heap, uint64_t address)
{
	uint64_t size = 0;

	if (!heap)
		return 0;
	pthread_mutex_lock(&heap->lock);
	for (const struct piece *piece = heap->first; piece; piece = piece->next)
		if (piece->at == address && piece->taken && !piece->text)
			size = piece->size;
	pthread_mutex_unlock(&heap->lock);
	return size;
}

/* What was not handed out is ignored. */
void ptx_heap_free(struct ptx_heap *heap, uint64_t address)
{
	struct piece *before = NULL;

	if (!heap || !address)
		return;
	pthread_mutex_lock(&heap->lock);
	for (struct piece *piece = heap->first; piece; before = piece, piece = piece->next) {
		struct piece *next = piece->next;

		if (piece->at != address || !piece->taken || piece->text)
			continue;
		piece->taken = false;
		if (next && !next->taken) {
			piece->size += next->size;
			piece->next = next->next;
			free(next);
		}
		if (before && !before->taken) {
			before->size += piece->size;
			before->next = piece->next;
			free(piece);
		}
		break;
	}
	pthread_mutex_unlock(&heap->lock);
}
