/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout: what is let through is scaled, the rest is nothing; the gradient goes the same way;
 * the same seed gives the same again.
 */
#include "tests/cudnn/check.h"

#define RATE 0.25

static struct tensor x, y, dy, dx;
static cudnnDropoutDescriptor_t dropout;
static void *states, *reserve;
static size_t states_size, reserve_size;

/* A copy of y as one more forward call leaves it; the caller frees. */
static float *again(void)
{
	float *copy = malloc(y.bytes);

	DNN(cudnnDropoutForward(handle, dropout, x.descriptor, x.device, y.descriptor, y.device,
		reserve, reserve_size));
	from_device(copy, y.device, y.bytes);
	return copy;
}

int main(void)
{
	float *first, *second, *third, *back, rate;
	unsigned long long seed;
	size_t kept = 0;
	void *where;

	begin();
	x = TENSOR(CUDNN_DATA_FLOAT, false, 4, 8, 16, 16);
	y = TENSOR(CUDNN_DATA_FLOAT, false, 4, 8, 16, 16);
	dy = TENSOR(CUDNN_DATA_FLOAT, false, 4, 8, 16, 16);
	dx = TENSOR(CUDNN_DATA_FLOAT, false, 4, 8, 16, 16);
	for (size_t i = 0; i < x.elements; i++)
		put_at(x.host, x.type, i, 1 + (double)(i % 7));
	to_there(&x);
	DNN(cudnnDropoutGetStatesSize(handle, &states_size));
	DNN(cudnnDropoutGetReserveSpaceSize(x.descriptor, &reserve_size));
	states = device_new(states_size);
	reserve = device_new(reserve_size);
	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, RATE, states, states_size, 42));

	first = again();
	back = malloc(dx.bytes);
	DNN(cudnnDropoutBackward(handle, dropout, dy.descriptor, dy.device, dx.descriptor,
		dx.device, reserve, reserve_size));
	from_device(back, dx.device, dx.bytes);
	for (size_t i = 0; i < x.elements; i++) {
		float all = (float)(get_at(x.host, x.type, i) / (1 - RATE));
		float slope =
			first[i] != 0 ? (float)(get_at(dy.host, dy.type, i) / (1 - RATE)) : 0;

		if (first[i] != 0 && fabsf(first[i] - all) > 1e-4f)
			DIE("element %zu is %g, neither 0 nor %g", i, (double)first[i],
				(double)all);
		if (fabsf(back[i] - slope) > 1e-5f)
			DIE("the gradient of element %zu is %g, not %g", i, (double)back[i],
				(double)slope);
		kept += first[i] != 0;
	}
	/* Some ten standard deviations. */
	if (fabs((double)kept / (double)x.elements - (1 - RATE)) > 0.05)
		DIE("%zu of %zu elements were kept", kept, x.elements);

	second = again();
	if (!memcmp(first, second, y.bytes))
		DIE("two calls dropped the same elements");
	DNN(cudnnSetDropoutDescriptor(dropout, handle, RATE, states, states_size, 42));
	third = again();
	if (memcmp(first, third, y.bytes))
		DIE("the same seed dropped other elements");

	/* What is in the states is kept by a descriptor that takes them over. */
	DNN(cudnnRestoreDropoutDescriptor(dropout, handle, RATE, states, states_size, 42));
	free(third);
	third = again();
	if (memcmp(second, third, y.bytes))
		DIE("restored states went on from another place");
	DNN(cudnnGetDropoutDescriptor(dropout, handle, &rate, &where, &seed));
	if (rate != (float)RATE || where != states || seed != 42)
		DIE("the descriptor says %g, %p, %llu", (double)rate, where, seed);

	DNN(cudnnDestroyDropoutDescriptor(dropout));
	free(first);
	free(second);
	free(third);
	free(back);
	device_free(states);
	device_free(reserve);
	tensor_free(&x);
	tensor_free(&y);
	tensor_free(&dx);
	tensor_free(&dy);
	return end();
}
