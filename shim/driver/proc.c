/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGetProcAddress, from the generated table; and cuGetExportTable, which answers for no table
 * but one, in which all is refused: they are NVIDIA's private ones.
 */
#include "shim/driver/forms.h"
#include "shim/driver/procs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/guard.h"
#include "shim/driver/static_runtime.h"
#include "shim/engine/trace.h"
#include "shim/generated/cuda_calls.h"
#include "shim/generated/cuda_hand.h"

CUresult hand_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
	cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
	const struct cuda_proc *proc;
	const struct cuda_proc *best = NULL;
	unsigned count = 0;
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;

	/* Of a later major version than any driver is. */
	if (!symbol || !pfn || cudaVersion / 1000 > CUDA_VERSION / 1000 ||
		flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	proc = cuda_proc_find(symbol, &count);
	for (unsigned i = 0; i < count; i++)
		if (proc[i].since <= cudaVersion)
			best = &proc[i];
	if (!proc)
		result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	else if (!best)
		result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		*pfn = per_thread && best->per_thread ? best->per_thread : best->function;
	if (symbolStatus)
		*symbolStatus = result;
	return CUDA_SUCCESS;
}

/* Before CUDA 12: what is not there is an error. */
CUresult proc_first(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
	CUresult status = hand_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, &found);

	return !status && found != CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_ERROR_NOT_FOUND : status;
}

/* NVIDIA's own libraries (NVML, cuBLAS) ask too and live without an answer, or fail with an
 * error of theirs; nobody can rebuild them. */
static bool nvidias(const char *name)
{
	return !strncmp(name, "libnv", 5) || !strncmp(name, "libcu", 5);
}

/* NVIDIA's own, where a program has got hold of it in spite of ours (it is linked in, or bound
 * to a library of its own): it tells a profiler that it does not work, and few tell their user.
 */
static bool is_cupti(const char *name)
{
	return !strncmp(name, "libcupti", 8);
}

static void tell_static(const char *who, const char *file)
{
	struct static_runtime runtime;
	char version[32] = "";
	int n = 0;

	if (static_runtime_read(file, &runtime))
		n = snprintf(version, sizeof(version), " of CUDA %u", runtime.major);
	if (n && runtime.minor_known)
		snprintf(version + n, sizeof(version) - (size_t)n, ".%u", runtime.minor);
	dprintf(STDERR_FILENO,
		"vcuda: %s is linked with the static runtime%s, %s; rebuild with "
		"-cudart shared%s\n",
		who, version,
		n && runtime.major < 12 ? "which is too old" : "stripped of its symbols",
		n && runtime.major < 12 ? " and CUDA 12 or 13" : ", or do not strip it");
}

/* The table that CUPTI asks for first. CUPTI 13.2 asks in each of its functions, also in the
 * one that names an error, so that it calls itself for ever where the table is refused. A table
 * begins with its size. CUPTI 13 looks at that, and does without functions behind
 * CUPTI_TABLE_BYTES; CUPTI 12 calls what it wants. So there are more functions than the size
 * says, and each refuses. */
static const uint8_t cupti_table_id[] = {0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42, 0xa4,
	0x84, 0xbe, 0xb6, 0x6e, 0x6a, 0xed, 0x7f};
#define CUPTI_TABLE_BYTES 0x218
#define CUPTI_FUNCTIONS 512

static CUresult cupti_refused(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static const struct {
	uint64_t bytes;
	CUresult (*functions[CUPTI_FUNCTIONS])(void);
} cupti_table = {CUPTI_TABLE_BYTES, {[0 ... CUPTI_FUNCTIONS - 1] = cupti_refused}};

extern struct vcuda_guard vcuda_guard __attribute__((weak, visibility("default")));

/* In an object whose runtime the loader guard sends to ours, somebody else asks: NVRTC, where
 * it is linked in too. */
static bool redirected(const void *caller)
{
	return &vcuda_guard && vcuda_guard.linked(caller);
}

/* The tables are asked for by a statically linked CUDA runtime: ours needs none, and the loader
 * guard redirects the others where it finds their functions. So this is one that cannot work,
 * and its user must learn why: one line is printed without being asked for. */
CUresult hand_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	static int logged_once, cupti_once;
	const char *who = program_invocation_name, *file = "/proc/self/exe", *name;
	const void *from;
	Dl_info caller;

	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	if (!memcmp(pExportTableId->bytes, cupti_table_id, sizeof(cupti_table_id))) {
		*ppExportTable = &cupti_table;
		return CUDA_SUCCESS;
	}
	/* The exported stub ends in a jump here, so the caller is who asks: the program, or a
	 * library of its own (NVIDIA's cuBLAS brings such a runtime). */
	from = trace_caller(CALL_cuGetExportTable, __builtin_return_address(0));
	if (dladdr(from, &caller) && caller.dli_fname && caller.dli_fname[0] == '/')
		who = file = caller.dli_fname;
	name = strrchr(who, '/');
	name = name ? name + 1 : who;
	if (is_cupti(name) && !__atomic_exchange_n(&cupti_once, 1, __ATOMIC_RELAXED))
		dprintf(STDERR_FILENO,
			"vcuda: a profiler uses CUPTI of its own (%s), which sees no GPU of "
			"another "
			"machine: let it open libcupti.so.12 or libcupti.so.13, which vcuda "
			"serves\n",
			who);
	else if (!nvidias(name) && !redirected(from) &&
		 !__atomic_exchange_n(&logged_once, 1, __ATOMIC_RELAXED))
		tell_static(who, file);
	return CUDA_ERROR_NOT_SUPPORTED;
}
