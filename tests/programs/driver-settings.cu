// SPDX-License-Identifier: Apache-2.0
/* What the driver keeps for a process: settings of core dumps and their defaults, its error log,
 * notifications, profiler
 * ranges. */
#include "driver.h"

static void coredump(void)
{
	char name[1024] = "";
	bool on = true;
	int flags = -1;
	size_t size;

	ENTRY(cuCoredumpGetAttribute);
	ENTRY(cuCoredumpGetAttributeGlobal);
	ENTRY(cuCoredumpSetAttribute);
	ENTRY(cuCoredumpSetAttributeGlobal);
	size = sizeof(on);
	DRIVER(p_cuCoredumpGetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size));
	CHECK(!on);
	size = sizeof(on);
	DRIVER(p_cuCoredumpGetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, &on, &size));
	CHECK(on);
	size = sizeof(name);
	DRIVER(p_cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
	/* The release and the machine say what it is: a folder before it, or no name at all. */
	if (!memchr(name, 0, sizeof(name)) || (*name && !strstr(name, "core")))
		FAIL("the core dump's name is '%.*s'", (int)sizeof(name) - 1, name);
	size = sizeof(flags);
	DRIVER(p_cuCoredumpGetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	CHECK_EQ(flags, 0);

	/* A context has what the process has, until it is told otherwise. */
	size = sizeof("of-all");
	DRIVER(p_cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, (void *)"of-all", &size));
	size = sizeof(name);
	DRIVER(p_cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
	CHECK(!strcmp(name, "of-all"));
	size = sizeof("of-one");
	DRIVER(p_cuCoredumpSetAttribute(CU_COREDUMP_FILE, (void *)"of-one", &size));
	size = sizeof(name);
	DRIVER(p_cuCoredumpGetAttribute(CU_COREDUMP_FILE, name, &size));
	CHECK(!strcmp(name, "of-one"));
	size = sizeof(name);
	DRIVER(p_cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
	CHECK(!strcmp(name, "of-all"));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuCoredumpGetAttributeGlobal((CUcoredumpSettings)0, name, &size));
}

static void CUDA_CB listen(void *data, CUlogLevel, char *, size_t)
{
	++*(int *)data;
}

static void logs(void)
{
	char text[25600] = "?";
	size_t size = sizeof(text);
	CUlogIterator now;
	CUlogsCallbackHandle handle;
	int heard = 0;

	ENTRY(cuLogsCurrent);
	ENTRY(cuLogsDumpToMemory);
	ENTRY(cuLogsRegisterCallback);
	ENTRY(cuLogsUnregisterCallback);
	DRIVER(p_cuLogsCurrent(&now, 0));
	/* Nothing has happened since. */
	DRIVER(p_cuLogsDumpToMemory(&now, text, &size, 0));
	CHECK_EQ((int)size, 0);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuLogsCurrent(NULL, 0));
	DRIVER(p_cuLogsRegisterCallback(listen, &heard, &handle));
	DRIVER(p_cuLogsUnregisterCallback(handle));
	CHECK_EQ(heard, 0);
}

static void notified(CUasyncNotificationInfo *, void *data, CUasyncCallbackHandle)
{
	++*(int *)data;
}

static void notifications(void)
{
	CUasyncCallbackHandle handle;
	int times = 0;

	ENTRY(cuDeviceRegisterAsyncNotification);
	ENTRY(cuDeviceUnregisterAsyncNotification);
	DRIVER(p_cuDeviceRegisterAsyncNotification(0, notified, &times, &handle));
	DRIVER(p_cuDeviceUnregisterAsyncNotification(0, handle));
	CHECK_EQ(times, 0);
	cudaAsyncCallbackHandle_t same;
	CUDA(cudaDeviceRegisterAsyncNotification(
		0, [](cudaAsyncNotificationInfo_t *, void *, cudaAsyncCallbackHandle_t) {},
		NULL, &same));
	CUDA(cudaDeviceUnregisterAsyncNotification(0, same));
}

int main(void)
{
	CUDA(cudaFree(0));
	coredump();
	logs();
	notifications();
	DRIVER(driver_entry<CUresult (*)(void)>("cuProfilerStart")());
	DRIVER(driver_entry<CUresult (*)(void)>("cuProfilerStop")());
	return 0;
}
