/* SPDX-License-Identifier: Apache-2.0
 *
 * The CTC loss, with labels on the host and on the device, against a sum over every path.
 */
#include "tests/cudnn/check.h"

enum { T = 5, N = 3, A = 4 };

static const int labels[] = {1, 2, 3, 3, 1};
static const int label_lengths[N] = {2, 2, 1};
static const int input_lengths[N] = {T, T, T};

/* Whether a path of T letters gives the label: runs are one, blanks (0) are nothing. */
static bool gives(const int *path, const int *label, int length)
{
	int found = 0, last = 0;

	for (int t = 0; t < T; t++) {
		if (path[t] && path[t] != last) {
			if (found == length || label[found] != path[t])
				return false;
			found++;
		}
		last = path[t];
	}
	return found == length;
}

static double probability(const double *x, int t, int k)
{
	double sum = 0;

	for (int i = 0; i < A; i++)
		sum += exp(x[t * A + i]);
	return exp(x[t * A + k]) / sum;
}

/* The loss of one sequence's activations, T times A. */
static double loss(const double *x, const int *label, int length)
{
	double sum = 0;

	for (int number = 0; number < 1 << (2 * T); number++) {
		int path[T];
		double one = 1;

		for (int t = 0; t < T; t++)
			path[t] = number >> (2 * t) & 3;
		if (!gives(path, label, length))
			continue;
		for (int t = 0; t < T; t++)
			one *= probability(x, t, path[t]);
		sum += one;
	}
	return -log(sum);
}

static void expect(const struct tensor *x, struct tensor *dx, float *costs)
{
	for (int n = 0, first = 0; n < N; first += label_lengths[n++]) {
		double one[T * A];

		for (int i = 0; i < T * A; i++)
			one[i] = GET(x, i / A, n, i % A);
		costs[n] = (float)loss(one, labels + first, label_lengths[n]);
		for (int i = 0; i < T * A; i++) {
			double more, less, at = one[i];

			one[i] = at + 1e-5;
			more = loss(one, labels + first, label_lengths[n]);
			one[i] = at - 1e-5;
			less = loss(one, labels + first, label_lengths[n]);
			one[i] = at;
			PUT(dx, (more - less) / 2e-5, i / A, n, i % A);
		}
	}
}

int main(void)
{
	struct tensor x, dx;
	cudnnCTCLossDescriptor_t of;
	float want[N];
	void *costs, *workspace, *there[3];
	size_t size;
	int status;

	begin();
	x = TENSOR(CUDNN_DATA_FLOAT, false, T, N, A);
	dx = TENSOR(CUDNN_DATA_FLOAT, false, T, N, A);
	costs = device_new(sizeof(want));
	expect(&x, &dx, want);
	DNN(cudnnCreateCTCLossDescriptor(&of));

	DNN(cudnnSetCTCLossDescriptorEx(of, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
		CUDNN_NOT_PROPAGATE_NAN));
	DNN(cudnnGetCTCLossWorkspaceSize(handle, x.descriptor, dx.descriptor, labels,
		label_lengths, input_lengths, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, of, &size));
	workspace = device_new(size);
	DNN(cudnnCTCLoss(handle, x.descriptor, x.device, labels, label_lengths, input_lengths,
		costs, dx.descriptor, dx.device, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, of,
		workspace, size));
	compare(costs, want, CUDNN_DATA_FLOAT, N, 1e-4, "losses");
	compare(dx.device, dx.host, dx.type, dx.elements, 1e-3, "gradient");
	device_free(workspace);

	/* The same with the labels on the device. */
	there[0] = device_new(sizeof(labels));
	there[1] = device_new(sizeof(label_lengths));
	there[2] = device_new(sizeof(input_lengths));
	to_device(there[0], labels, sizeof(labels));
	to_device(there[1], label_lengths, sizeof(label_lengths));
	to_device(there[2], input_lengths, sizeof(input_lengths));
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)dx.device, 0xff, dx.bytes));
	DNN(cudnnSetCTCLossDescriptor_v8(of, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
		CUDNN_NOT_PROPAGATE_NAN, 2));
	status = (int)cudnnGetCTCLossWorkspaceSize_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC,
		of, x.descriptor, dx.descriptor, &size);
	if (not_supported(status)) {
		skipped("CTC with labels on the device");
	} else {
		DNN(status);
		workspace = device_new(size);
		DNN(cudnnCTCLoss_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, of, x.descriptor,
			x.device, there[0], there[1], there[2], costs, dx.descriptor, dx.device,
			size, workspace));
		compare(costs, want, CUDNN_DATA_FLOAT, N, 1e-4, "losses, labels on the device");
		compare(dx.device, dx.host, dx.type, dx.elements, 1e-3,
			"gradient, labels on the device");
		device_free(workspace);
	}
	DNN(cudnnDestroyCTCLossDescriptor(of));
	for (int i = 0; i < 3; i++)
		device_free(there[i]);
	device_free(costs);
	tensor_free(&x);
	tensor_free(&dx);
	return end();
}
