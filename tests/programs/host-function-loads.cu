// SPDX-License-Identifier: Apache-2.0
/*
 * Modules are loaded while host functions are outstanding: the driver waits for these in there,
 * and nothing else does.  Other threads go on, though the functions need what they hold; and
 * the loading comes to its end, though there is always one more function.
 */
#include "driver.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

enum { SECONDS = 60, THREADS = 4, COMMENT = 2500000 };

static cudaStream_t stream, other;
static std::mutex lock;
static std::atomic<int> ran;
static std::atomic<bool> over;

static void CUDART_CB slowly(void *)
{
	usleep(50000);
	ran++;
}

static void CUDART_CB shortly(void *)
{
	usleep(10000);
}

/* As an interpreter's lock does: somebody else may hold it during a call. */
static void CUDART_CB locking(void *)
{
	usleep(50000);
	std::lock_guard<std::mutex> held(lock);
	ran++;
}

/* Never the same text: it is loaded nowhere else and kept by nobody. */
static std::string image_text(size_t comment)
{
	static std::atomic<unsigned> number;
	auto now = std::chrono::system_clock::now().time_since_epoch().count();

	return ".version 7.0\n.target sm_70\n.address_size 64\n"
	       "// " + std::to_string(now) + "-" + std::to_string(number++) + "\n" +
	       "//" + std::string(comment, '.') + "\n" +
	       ".visible .entry set(.param .u64 p)\n"
	       "{ .reg .b32 %r<2>; .reg .b64 %d<2>;\n"
	       "  ld.param.u64 %d1, [p]; mov.u32 %r1, 4711; st.global.u32 [%d1], %r1; ret; }\n";
}

/* Loads it, runs its kernel, and gives it back. */
static void load_and_run(const std::string &text)
{
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuModuleUnload);
	ENTRY(cuLaunchKernel);
	CUmodule module;
	CUfunction function;
	cudaStream_t mine;
	int *number, got = 0;

	CUDA(cudaMalloc(&number, sizeof(*number)));
	CUDA(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
	DRIVER(p_cuModuleLoadData(&module, text.c_str()));
	DRIVER(p_cuModuleGetFunction(&function, module, "set"));
	void *arguments[] = {&number};
	DRIVER(p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, mine, arguments, NULL));
	CUDA(cudaMemcpyAsync(&got, number, sizeof(got), cudaMemcpyDeviceToHost, mine));
	CUDA(cudaStreamSynchronize(mine));
	CHECK_EQ(got, 4711);
	DRIVER(p_cuModuleUnload(module));
	CUDA(cudaStreamDestroy(mine));
	CUDA(cudaFree(number));
}

static void expect_ran(int times)
{
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(ran.exchange(0), times);
}

static void a_module_is_loaded_behind_a_function()
{
	CUDA(cudaLaunchHostFunc(stream, slowly, NULL));
	load_and_run(image_text(0));
	expect_ran(1);
}

/* The function needs a lock that this thread holds during other calls. */
static void another_thread_loads_meanwhile()
{
	void *memory;

	CUDA(cudaMalloc(&memory, 1024));
	lock.lock();
	CUDA(cudaLaunchHostFunc(stream, locking, NULL));
	std::thread loading([] { load_and_run(image_text(0)); });
	for (int i = 0; i < 20; i++) {
		usleep(10000); /* the load is on its way behind the function, at some time */
		CUDA(cudaMemsetAsync(memory, 0, 1024, other));
		CUDA(cudaStreamSynchronize(other));
	}
	lock.unlock();
	loading.join();
	expect_ran(1);
	CUDA(cudaFree(memory));
}

/* Two by two they load the same; the images are sent in several pieces. */
static void many_threads_load_behind_a_function()
{
	std::vector<std::thread> loading;
	std::vector<std::string> texts;

	for (int i = 0; i < THREADS / 2; i++)
		texts.push_back(image_text(COMMENT));
	CUDA(cudaLaunchHostFunc(stream, slowly, NULL));
	for (int i = 0; i < THREADS; i++)
		loading.emplace_back([&texts, i] { load_and_run(texts[i / 2]); });
	for (auto &thread : loading)
		thread.join();
	expect_ran(1);
}

/* At any time a function of one of two streams is outstanding. */
static void a_module_is_loaded_though_functions_never_end()
{
	std::thread functions([] {
		cudaStream_t streams[2] = {stream, other};
		cudaEvent_t done[2];

		for (int i = 0; i < 2; i++) {
			CUDA(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
			CUDA(cudaLaunchHostFunc(streams[i], shortly, NULL));
			CUDA(cudaEventRecord(done[i], streams[i]));
		}
		for (int i = 0; !over; i++) {
			CUDA(cudaLaunchHostFunc(streams[i % 2], shortly, NULL));
			CUDA(cudaEventSynchronize(done[i % 2]));
			CUDA(cudaEventRecord(done[i % 2], streams[i % 2]));
		}
		CUDA(cudaDeviceSynchronize());
	});

	usleep(5000);
	load_and_run(image_text(0));
	over = true;
	functions.join();
}

static const struct part {
	const char *name;
	void (*run)();
} parts[] = {
	{"behind", a_module_is_loaded_behind_a_function},
	{"many", many_threads_load_behind_a_function},
	{"never", a_module_is_loaded_though_functions_never_end},
	{"meanwhile", another_thread_loads_meanwhile},
};

/* With NVIDIA's own driver the calls of other threads wait while a load waits for host
 * functions: a function that needs what such a thread holds never ends there. */
static bool would_hang(const part &part)
{
	const char *preload = getenv("LD_PRELOAD");

	return part.run == another_thread_loads_meanwhile &&
	       !(preload && strstr(preload, "vcuda"));
}

/* host-function-loads [PART] */
int main(int argc, char **argv)
{
	alarm(SECONDS); /* where it hangs */
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	for (const part &part : parts) {
		if (argc > 1 && std::string(argv[1]) != part.name)
			continue;
		if (would_hang(part)) {
			printf("%s: not done: natively other threads' calls wait for the load\n",
				part.name);
			continue;
		}
		printf("%s\n", part.name);
		fflush(stdout);
		part.run();
	}
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(other));
	printf("modules were loaded behind host functions\n");
	return 0;
}
