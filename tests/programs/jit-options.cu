// SPDX-License-Identifier: Apache-2.0
/* What the JIT is told and what it tells: options that limit it, texts in the caller's buffers and
 * their lengths, the time it took, and an error for each kind of text that it cannot take. */
#include "driver.h"

#include <unistd.h>

#include <string>

static const char good[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			   ".visible .entry answer(.param .u64 out) {\n"
			   ".reg .b64 %a;\n.reg .b32 %v;\n"
			   "ld.param.u64 %a, [out];\n"
			   "cvta.to.global.u64 %a, %a;\n"
			   "mov.u32 %v, 42;\n"
			   "st.global.u32 [%a], %v;\n"
			   "ret;\n}\n";

/* The status of loading TEXT, and what was written into the error log. */
static CUresult load(const char *text, std::string *log)
{
	char error[4096] = "";
	CUjit_option options[] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {error, (void *)sizeof(error)};
	CUmodule module;

	ENTRY(cuModuleLoadDataEx);
	ENTRY(cuModuleUnload);
	CUresult status = p_cuModuleLoadDataEx(&module, text, 2, options, values);
	CHECK((uintptr_t)values[1] <= sizeof(error));
	if (status == CUDA_SUCCESS)
		DRIVER(p_cuModuleUnload(module));
	*log = error;
	return status;
}

static void refused(void)
{
	std::string log;

	CHECK_EQ((int)load(good, &log), (int)CUDA_SUCCESS);
	CHECK(log.empty());
	std::string text = good;
	text.replace(text.find("mov.u32"), 7, "mvo.u32");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_ERROR_INVALID_PTX);
	CHECK(!log.empty());
	text = good;
	text.replace(text.find("7.0"), 3, "99.0");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	CHECK(!log.empty());
	text = good;
	text.replace(0, text.find('\n') + 1, "");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_ERROR_INVALID_IMAGE); /* PTX begins with it */
	CHECK(!log.empty());
	text = good;
	text.replace(text.find("sm_75"), 5, "sm_150");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_ERROR_INVALID_PTX);
	CHECK(!log.empty());
	text = good;
	text.replace(text.find(".target"), sizeof(".target sm_75"), "");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_ERROR_INVALID_PTX);
	CHECK(!log.empty());
	text = good;
	text.insert(text.find(".visible"), ".extern .func absent(.param .b32 a);\n");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_SUCCESS); /* nobody calls it */
	text.replace(text.find("ret;"), 4,
		"{ .param .b32 p; st.param.b32 [p], %v; call absent, (p); }\nret;");
	CHECK_EQ((int)load(text.c_str(), &log), (int)CUDA_ERROR_INVALID_PTX);
	CHECK(log.find("Unresolved extern function 'absent'") != std::string::npos);
	CHECK_EQ((int)load("nothing of this is a module", &log), (int)CUDA_ERROR_INVALID_IMAGE);
	CHECK(!log.empty());
}

static void told(void)
{
	char error[512] = "", info[512] = "";
	CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL,
		CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
	void *values[] = {(void *)32, (void *)3, NULL, (void *)-1, info, (void *)sizeof(info),
		error, (void *)sizeof(error), (void *)1};
	CUmodule module;
	CUfunction function;
	int *device, host = 0;
	float wall;

	ENTRY(cuModuleLoadDataEx);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuModuleUnload);
	ENTRY(cuLaunchKernel);
	/* A text that NVIDIA's driver has not compiled before: of others it tells nothing. */
	std::string text = good + ("// " + std::to_string(getpid()) + "\n");
	DRIVER(p_cuModuleLoadDataEx(&module, text.c_str(), 9, options, values));
	memcpy(&wall, &values[3], sizeof(wall));
	CHECK(wall >= 0 && wall < 60000);
	CHECK((uintptr_t)values[5] <= sizeof(info));
	CHECK((uintptr_t)values[7] <= sizeof(error));
	CHECK(strstr(info, "'answer'") && strstr(info, " registers"));
	DRIVER(p_cuModuleGetFunction(&function, module, "answer"));
	CUDA(cudaMalloc((void **)&device, sizeof(host)));
	void *args[] = {&device};
	DRIVER(p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	CUDA(cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host, 42);
	CUDA(cudaFree(device));
	DRIVER(p_cuModuleUnload(module));
}

/* The linker's text is in the buffers that its state was made with. */
static void told_by_linker(void)
{
	char error[512] = "x", info[512] = "x", small[24];
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_LOG_VERBOSE};

	ENTRY(cuLinkCreate);
	ENTRY(cuLinkAddData);
	ENTRY(cuLinkComplete);
	ENTRY(cuLinkDestroy);
	for (char *to : {info, small}) {
		size_t room = to == info ? sizeof(info) : sizeof(small), size;
		void *values[] = {to, (void *)room, error, (void *)sizeof(error), (void *)1};
		CUlinkState state;
		void *linked;

		DRIVER(p_cuLinkCreate(5, options, values, &state));
		DRIVER(p_cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)good, strlen(good) + 1,
			NULL, 0, NULL, NULL));
		DRIVER(p_cuLinkComplete(state, &linked, &size));
		CHECK(strnlen(to, room) < room);
		if (to == info)
			CHECK(strstr(info, "'answer'") && strstr(info, " registers"));
		CHECK(!*error);
		DRIVER(p_cuLinkDestroy(state));
	}
}

int main(void)
{
	CUDA(cudaFree(0));
	refused();
	told();
	told_by_linker();
	return 0;
}
