// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of the driver and the runtime, drawn from a seed, and what each answered: the same calls in
 * front of any libcuda, so that two traces can be compared line by line (compare.py).
 *
 *	trace FIRST COUNT CALLS FOLDER		writes FOLDER/SEED for each of COUNT seeds
 *
 * Each seed is a process of its own, with three threads of which one calls at a time.  Handles and
 * addresses are printed by the name they got when they were first seen, and what a call does not
 * write is printed as nothing.  What each call draws depends on the seed and its number alone, not
 * on earlier answers: after a difference the rest can still be compared.
 */
#include "call.h"

struct function {
	const char *name;
	void (*call)(Call &);
	enum gone gone;
};

#include "calls.inc"

/* ---- the threads, of which one runs ---- */

static std::mutex baton;
static std::condition_variable passed;
static int turn = -1; /* whose; -1: the main thread's; -2: the end */
static Call *current;
static const struct function *called;

static void thread_main(int self)
{
	std::unique_lock<std::mutex> hold(baton);

	for (;;) {
		passed.wait(hold, [&] { return turn == self || turn == -2; });
		if (turn == -2)
			return;
		called->call(*current);
		turn = -1;
		passed.notify_all();
	}
}

static void *runtime;

static void call_on(int thread, const struct function *function, uint64_t random, void *library)
{
	Call call = {.name = function->name, .random = random, .thread = thread};

	call.function = dlsym(strncmp(function->name, "cuda", 4) ? library : runtime, function->name);
	if (!call.function) {
		fprintf(out, "T%d %s is not there\n", thread, function->name);
		return;
	}
	std::unique_lock<std::mutex> hold(baton);
	current = &call;
	called = function;
	turn = thread;
	passed.notify_all();
	passed.wait(hold, [] { return turn == -1; });
}

/* ---- a sequence ---- */

/* What a sequence is about: parts of the names of its functions, three calls of four. */
static const char *const themes[][10] = {
	{"Stream", "Event", "Launch", "Synchronize", NULL},
	{"Graph", "Capture", NULL},
	{"Graph", "Node", NULL},
	{"Capture", "Event", "Launch", "Memcpy", "MemsetAsync", "Malloc", NULL},
	{"Mem", "Memcpy", "Memset", "Malloc", "Pointer", NULL},
	{"Array", "TexObject", "SurfObject", "TextureObject", "SurfaceObject", "Memcpy2D", "Memcpy3D", NULL},
	{"Pool", "Async", "Stream", NULL},
	{"Ctx", "Device", NULL},
	{"Module", "Library", "Kernel", "Func", "Occupancy", "Launch", NULL},
	{"MemCreate", "MemMap", "MemAddress", "MemSetAccess", "MemGetAccess", "MemUnmap", "MemRelease",
		"MemRetain", NULL},
	{"Limit", "Cache", "Config", "Attribute", "Flags", "Error", NULL},
	{"cuda", NULL},
	{"Managed", "Prefetch", "Advise", "MemRange", "AttachMem", "Discard", "MemcpyAsync", "PointerGet", NULL},
	{"BatchMemOp", "WaitValue", "WriteValue", "MemcpyBatch", "Memcpy3DBatch", "GraphLaunch", "GraphInstantiate",
		"Synchronize", NULL},
	{"Conditional", "AddNode", "NodeSetParams", "InstantiateWith", "GraphLaunch", "GraphCreate", "ToGraph",
		"GraphNodeGetType", NULL},
	{"Green", "DevResource", "DevSm", "StreamGet", "EventRecord", "CtxFrom", "CtxGet", NULL},
	{"Ipc", "Shareable", "MemPoolImport", "MemPoolExport", "PoolCreate", "MemCreate", "EventCreate",
		"FromPool", NULL},
	{"Link", "Load", "Tensor", "Symbol", "ProcAddress", "EntryPoint", "Func", NULL},
	{"Coredump", "Logs", "Register", "UserObject", "Callback", "HostFunc", "Requirements", "Sparse", NULL},
};

static bool is_about(const struct function *function, const char *const *theme)
{
	for (; *theme; theme++)
		if (strstr(function->name, *theme))
			return true;
	return false;
}

static void *load(void)
{
	return dlopen("libcuda.so.1", RTLD_NOW);
}

#define DRIVER(library, function) ((decltype(&function))dlsym(library, #function))

static void put(handle_class kind, int index, const void *value)
{
	slots[kind][index] = {(uint64_t)value, true, 0, -1, false};
	name_new(kind, (uint64_t)value);
}

/* What most calls need to get anywhere; a sequence in eight begins with less. */
static void begin(void *library, uint64_t *random)
{
	uint64_t less = mix(random) % 16;
	CUcontext context;
	CUstream stream;
	CUevent event;
	CUdeviceptr memory;
	CUmodule module;
	CUlibrary code;
	CUkernel kernel;
	CUfunction function;
	CUgraph graph;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR shape = {64, 16, CU_AD_FORMAT_FLOAT, 1};

	if (less == 0)
		return;
	DRIVER(library, cuInit)(0);
	if (less == 1)
		return;
	DRIVER(library, cuDevicePrimaryCtxRetain)(&context, 0);
	put(CLASS_context, 0, context);
	DRIVER(library, cuCtxSetCurrent)(context);
	for (int i = 0; i < 2; i++) {
		if (!DRIVER(library, cuStreamCreate)(&stream, (unsigned)i))
			put(CLASS_stream, i, stream);
		if (!DRIVER(library, cuEventCreate)(&event, (unsigned)i * 2))
			put(CLASS_event, i, event);
		if (!((decltype(&cuMemAlloc_v2))dlsym(library, "cuMemAlloc_v2"))(&memory, 65536 << i))
			put(CLASS_memory, i, (void *)memory);
		if (!DRIVER(library, cuGraphCreate)(&graph, 0))
			put(CLASS_graph, i, graph);
		if (!((decltype(&cuArrayCreate_v2))dlsym(library, "cuArrayCreate_v2"))(&array, &shape))
			put(CLASS_array, i, array);
		shape.Height = 0;
	}
	if (!DRIVER(library, cuModuleLoadData)(&module, image)) {
		put(CLASS_module, 0, module);
		if (!DRIVER(library, cuModuleGetFunction)(&function, module, "count"))
			put(CLASS_function, 0, function);
		if (!DRIVER(library, cuModuleGetFunction)(&function, module, "nothing"))
			put(CLASS_function, 1, function);
	}
	if (!DRIVER(library, cuLibraryLoadData)(&code, image, NULL, NULL, 0, NULL, NULL, 0)) {
		put(CLASS_library, 0, code);
		if (!DRIVER(library, cuLibraryGetKernel)(&kernel, code, "count"))
			put(CLASS_kernel, 0, kernel);
	}
}

/* Of what the rarer families need, what few other calls would make. */
static void begin_more(void *library, bool green)
{
	enum { WAITED = 16 << 20 };
	CUdeviceptr memory;
	CUdevResource resource;
	CUdevResourceDesc description;
	CUlinkState link;
	CUgreenCtx part;
	CUdeviceptr managed;

	/* In the middle of its own: what is written beside another allocation's end is not on it. */
	if (!((decltype(&cuMemAlloc_v2))dlsym(library, "cuMemAlloc_v2"))(&memory, WAITED) &&
		!((decltype(&cuMemsetD32_v2))dlsym(library, "cuMemsetD32_v2"))(
			memory + WAITED / 2, 1, 1024) &&
		!DRIVER(library, cuCtxSynchronize)())
		waited = memory + WAITED / 2;
	if (!DRIVER(library, cuDeviceGetDevResource)(0, &resource, CU_DEV_RESOURCE_TYPE_SM)) {
		resources[0] = resource;
		if (!DRIVER(library, cuDevResourceGenerateDesc)(&description, &resource, 1))
			put(CLASS_description, 0, description);
		if (green && slots[CLASS_description][0].live &&
			!DRIVER(library, cuGreenCtxCreate)(
				&part, description, 0, CU_GREEN_CTX_DEFAULT_STREAM))
			put(CLASS_green, 0, part);
	}
	if (!((decltype(&cuLinkCreate_v2))dlsym(library, "cuLinkCreate_v2"))(0, NULL, NULL, &link))
		put(CLASS_link, 0, link);
	if (!DRIVER(library, cuMemAllocManaged)(&managed, 2 << 20, CU_MEM_ATTACH_GLOBAL))
		put(CLASS_managed, 0, (void *)managed);
}

static void sequence(uint64_t seed, int calls)
{
	uint64_t random = seed * 0x2545f4914f6cdd1du;
	const char *const *theme = themes[mix(&random) % COUNT(themes)];
	std::vector<const struct function *> about;
	std::vector<std::thread> threads;
	void *library = load();

	if (!library) {
		fprintf(out, "no libcuda.so.1: %s\n", dlerror());
		return;
	}
	/* By its own name: a process may have the runtimes of two majors. */
	runtime = dlopen("libcudart.so.13", RTLD_NOW);
	if (!runtime) {
		fprintf(out, "no libcudart.so.13: %s\n", dlerror());
		return;
	}
	host_pool = (unsigned char *)mmap(
		NULL, HOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (const auto &function : functions)
		if (is_about(&function, theme))
			about.push_back(&function);
	begin(library, &random);
	if (slots[CLASS_memory][0].live)
		begin_more(library, !strcmp(theme[0], "Green"));
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(thread_main, i);
	for (int i = 0; i < calls; i++) {
		uint64_t own = seed << 32 | (uint64_t)i;
		uint64_t dice = mix(&own);
		/* The first thread most of the time: it has a context. */
		int thread = dice % 8 < 6 ? 0 : (int)(dice % 8) - 5;
		const struct function *function = (dice >> 8) % 4
			? about[(dice >> 16) % about.size()]
			: &functions[(dice >> 16) % COUNT(functions)];

		/* What takes others with it is called less often, or nothing is left for most calls. */
		for (uint64_t keep = (dice >> 40) % 8; function->gone >= GONE_FAMILY && keep > (function->gone == GONE_ALL ? 1 : 3);)
			function = function + 1 < functions + COUNT(functions) ? function + 1 : functions;
		/* A thread that has never had a context is not the rule. */
		call_on(thread, function, own, library);
	}
	fprintf(out, "end\n");
	fflush(out);
	_exit(0);
}

/* Some calls write files, others read one. */
static void own_folder(unsigned long seed)
{
	const std::string name = std::to_string(seed);
	FILE *file = mkdir(name.c_str(), 0700) || chdir(name.c_str()) ? NULL : fopen("image.ptx", "w");

	if (!file || fputs(image, file) < 0 || fclose(file)) {
		perror("image.ptx");
		_exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: trace FIRST COUNT CALLS FOLDER\n");
		return 2;
	}
	const unsigned long first = strtoul(argv[1], NULL, 0), count = strtoul(argv[2], NULL, 0);
	const int calls = atoi(argv[3]);
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned long parallel = cores > 8 ? (unsigned long)cores : 8;
	unsigned long started = 0, running = 0;

	while (started < count || running) {
		if (started < count && running < parallel) {
			const unsigned long seed = first + started++;
			const pid_t child = fork();

			if (child < 0) {
				perror("fork");
				return 1;
			}
			if (child == 0) {
				const std::string path = std::string(argv[4]) + "/" + std::to_string(seed);

				out = fopen(path.c_str(), "w");
				if (!out) {
					perror(path.c_str());
					_exit(1);
				}
				own_folder(seed);
				alarm(SECONDS);
				sequence(seed, calls);
			}
			running++;
			continue;
		}
		int status;

		if (wait(&status) > 0)
			running--;
	}
	return 0;
}
