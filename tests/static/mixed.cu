// SPDX-License-Identifier: Apache-2.0
/* Copies of the CUDA runtime in one process: the program has one, linked in or shared; the
 * library that it is linked with has one of the other kind; and so have those that it opens,
 * LIBRARY=ADDS on the command line. They share the device and its memory; last errors are each
 * copy's own, while calls are recorded too. */
#include "check.h"
#include "part.h"

#include <dlfcn.h>
#include <string>
#include <vector>

static const int numbers_count = 1000;

/* One library, opened. */
struct part {
	std::string path;
	int adds;
	void *handle;
	decltype(&part_constructed) constructed;
	decltype(&part_add) add;
	decltype(&part_runs) runs;
	decltype(&part_fail) fail;
	decltype(&part_last) last;
};

template <typename F> static void find(F *function, void *handle, const char *name)
{
	*function = reinterpret_cast<F>(dlsym(handle, name));
	if (!*function)
		FAIL("%s: %s", name, dlerror());
}

static part open_part(const std::string &path, int adds, int mode)
{
	part p = {path, adds, dlopen(path.c_str(), mode), NULL, NULL, NULL, NULL, NULL};

	if (!p.handle)
		FAIL("%s", dlerror());
	find(&p.constructed, p.handle, "part_constructed");
	find(&p.add, p.handle, "part_add");
	find(&p.runs, p.handle, "part_runs");
	find(&p.fail, p.handle, "part_fail");
	find(&p.last, p.handle, "part_last");
	return p;
}

__global__ void double_each(int *numbers, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		numbers[i] *= 2;
}

/* The library's kernel runs on this program's memory, between this program's kernels. */
static void use(const part &p, int runs_before)
{
	std::vector<int> numbers(numbers_count);
	int *device, runs = -1;

	CHECK_EQ(p.constructed(), 0);
	for (int i = 0; i < numbers_count; i++)
		numbers[i] = i;
	CUDA(cudaMalloc((void **)&device, numbers_count * sizeof(int)));
	CUDA(cudaMemcpy(
		device, numbers.data(), numbers_count * sizeof(int), cudaMemcpyHostToDevice));
	double_each<<<8, 128>>>(device, numbers_count);
	LAUNCHED();
	CHECK_EQ(p.add(device, numbers_count), 0);
	double_each<<<8, 128>>>(device, numbers_count);
	LAUNCHED();
	CUDA(cudaMemcpy(
		numbers.data(), device, numbers_count * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < numbers_count; i++)
		CHECK_EQ_AT(i, numbers[i], 2 * (2 * i + p.adds));
	CUDA(cudaFree(device));
	CHECK_EQ(p.runs(&runs), 0);
	CHECK_EQ(runs, runs_before + 1);
}

/* What fails in one copy of the runtime is no other's last error. */
static void errors(const part &p, const std::vector<part> &others)
{
	CHECK_EQ(p.fail(), (int)cudaErrorInvalidDevice);
	CHECK_EQ((int)cudaGetLastError(), 0);
	for (const part &other : others)
		if (other.handle != p.handle)
			CHECK_EQ(other.last(), 0);
	CHECK_EQ(p.last(), (int)cudaErrorInvalidDevice);
	CHECK_EQ(p.last(), 0);

	CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(1000));
	CHECK_EQ(p.last(), 0);
	CUDA_IS(cudaErrorInvalidDevice, cudaGetLastError());
}

/* A recorder of calls (shim/engine/trace.h), which there is none of natively. */
static unsigned entered, left;
static void enter(void *)
{
	entered++;
}
static void leave(void *)
{
	left++;
}
static void sent(const void *, unsigned, uint64_t, uint16_t) {}
static const struct {
	void (*enter)(void *call);
	void (*leave)(void *call);
	void (*sent)(const void *call, unsigned agent, uint64_t seq, uint16_t op);
} recorder = {enter, leave, sent};

static void errors_recorded(const part &p, const std::vector<part> &others)
{
	auto record = (void (*)(const void *))dlsym(RTLD_DEFAULT, "vcuda_trace_set");

	if (!record)
		return;
	record(&recorder);
	errors(p, others);
	record(NULL);
	/* Of fail, set the device, ask for the error: six and one for each other. */
	CHECK(entered >= 6 && entered == left);
	entered = left = 0;
}

/* Closed and opened again; it begins anew where it was unloaded meanwhile. */
static void reopen(const part &p)
{
	int runs = 0;

	CHECK_EQ(p.runs(&runs), 0);
	CHECK_EQ(dlclose(p.handle), 0);
	void *stays = dlopen(p.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
	if (stays)
		dlclose(stays);
	else
		runs = 0;
	part again = open_part(p.path, p.adds, RTLD_LAZY | RTLD_LOCAL);
	use(again, runs);
	CHECK_EQ(dlclose(again.handle), 0);
}

int main(int argc, char **argv)
{
	const int modes[] = {
		RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_GLOBAL, RTLD_NOW | RTLD_DEEPBIND};
	std::vector<part> parts;
	part linked = {"", LINKED_ADDS, NULL, part_constructed, part_add, part_runs, part_fail,
		part_last};

	use(linked, 0);
	errors(linked, parts);
	errors_recorded(linked, parts);
	for (int i = 1; i < argc; i++) {
		const char *adds = strchr(argv[i], '=');

		CHECK(adds);
		parts.push_back(open_part(std::string(argv[i], (size_t)(adds - argv[i])),
			atoi(adds + 1), modes[i % 3]));
		CHECK(!dlerror());
		use(parts.back(), 0);
	}
	for (const part &p : parts) {
		use(p, 1);
		errors(p, parts);
		errors_recorded(p, parts);
	}
	for (const part &p : parts)
		reopen(p);
	use(linked, 1);
	printf("%zu libraries\n", parts.size());
	return 0;
}
