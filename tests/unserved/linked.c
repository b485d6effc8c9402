/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that is linked with the libraries that have no front: it loads, asks for versions,
 * and is refused in each library's own words.  Run without an agent: none is needed to refuse.
 */
#include <stdio.h>
#include <sys/types.h>

/* As NVIDIA's headers declare them, types aside. */
struct cufile_error {
	int error, cuda;
};
int cusolverMgCreate(void **handle);
void *nvshmem_malloc(size_t bytes);
int nvshmem_my_pe(void);
struct cufile_error cuFileDriverOpen(void);
ssize_t cuFileRead(void *handle, void *device, size_t bytes, off_t file, off_t offset);

static int failed;

static void check(const char *what, long got, long want)
{
	if (got == want)
		return;
	printf("fail  %s is %ld, not %ld\n", what, got, want);
	failed = 1;
}

int main(void)
{
	struct cufile_error error;
	void *handle = NULL;

	/* With more calls than one, each library is named once. */
	check("cusolverMgCreate", cusolverMgCreate(&handle), 9);
	check("cusolverMgCreate again", cusolverMgCreate(&handle), 9);
	check("nvshmem_malloc", nvshmem_malloc(8) == NULL, 1);
	check("nvshmem_my_pe", nvshmem_my_pe(), -1);
	error = cuFileDriverOpen();
	check("cuFileDriverOpen", error.error, 5007);
	check("cuFileDriverOpen, CUDA's part", error.cuda, 801);
	check("cuFileRead", cuFileRead(NULL, NULL, 1, 0, 0), -5007);
	check("no handle was made", handle != NULL, 0);
	if (!failed)
		puts("refused as natively declared");
	return failed;
}
