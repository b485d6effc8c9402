/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with a cache of compiled kernels where NVIDIA's driver has its own: loading
 * a module looks there, and leaves something there.  What it met is a line on its stdin, which
 * the test opened for that (stack.py, reporting): "hit", "miss" or "off".
 */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void report(const char *what)
{
	if (dprintf(STDIN_FILENO, "%s\n", what) < 0)
		abort();
}

static void leave(const char *folder)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/3", folder);
	if (mkdir(path, 0700))
		abort();
	snprintf(path, sizeof(path), "%s/3/kernel", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, "kernel", 6) != 6)
		abort();
	close(fd);
	snprintf(path, sizeof(path), "%s/index", folder);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || write(fd, "index", 5) != 5)
		abort();
	close(fd);
}

static const char *look(void)
{
	const char *folder = getenv("CUDA_CACHE_PATH"), *off = getenv("CUDA_CACHE_DISABLE");
	char path[4096];
	bool index;

	if (!folder || (off && strcmp(off, "0")))
		return "off";
	snprintf(path, sizeof(path), "%s/index", folder);
	index = !access(path, R_OK);
	snprintf(path, sizeof(path), "%s/3/kernel", folder);
	if (index && !access(path, R_OK))
		return "hit";
	leave(folder);
	return "miss";
}

__attribute__((visibility("default"))) CUresult cuModuleLoadDataEx(CUmodule *module,
	const void *image, unsigned int n, CUjit_option *options, void **values)
{
	static bool looked;
	__typeof__(&cuModuleLoadDataEx) load;

	*(void **)&load = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
	if (!looked)
		report(look());
	looked = true;
	return load(module, image, n, options, values);
}
