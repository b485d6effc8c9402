/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's CUPTI does with the driver's private tables, in a file with its name: it asks
 * for one in each function (13.2 also in the one that names an error, so that a refusal never
 * ends), looks at its size (13) or calls what lies behind (12), and asks for others, which it
 * does not get. A line on stderr says once which one is.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What CUPTI 13 looks for lies at this byte, and is its own where a table ends before. */
#define OWN_FROM 0x218
#define LAST_OF_12 0x800 /* a byte that no function of CUPTI 12's lies behind */

static const CUuuid first = {
	{0x7c, (char)0xb6, 0x3f, (char)0x9b, (char)0x9c, (char)0xa4, (char)0x8e, 0x42,
		(char)0xa4, (char)0x84, (char)0xbe, (char)0xb6, 0x6e, 0x6a, (char)0xed, 0x7f}};
static const CUuuid other = {{0x2c, (char)0x8e, 0x0a, (char)0xd8, 0x07, 0x10, (char)0xab, 0x4e,
	(char)0x90, (char)0xdd, 0x54, 0x71, (char)0x9f, (char)0xe5, (char)0xf7, 0x4b}};

/* How often a line of what was written says so. */
static int told(FILE *said)
{
	char line[512];
	int count = 0;

	rewind(said);
	while (fgets(line, sizeof(line), said))
		count += strstr(line, "uses CUPTI") != NULL;
	return count;
}

int main(void)
{
	const void *table = NULL;
	const uint64_t *words;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned) =
		driver ? (CUresult(*)(unsigned))dlsym(driver, "cuInit") : NULL;
	CUresult (*ask)(const void **, const CUuuid *) =
		driver ? (CUresult(*)(const void **, const CUuuid *))dlsym(
				 driver, "cuGetExportTable")
		       : NULL;
	FILE *said = tmpfile();

	if (!said || dup2(fileno(said), STDERR_FILENO) < 0)
		return 1;
	if (!init || !ask || init(0) || ask(&table, &first) || !table) {
		puts("the first table is refused");
		return 1;
	}
	words = table;
	if (words[0] > OWN_FROM) {
		puts("the table has functions in place of CUPTI's own");
		return 1;
	}
	for (unsigned at = 8; at < LAST_OF_12; at += 8) {
		CUresult (*function)(void) = (CUresult(*)(void))(uintptr_t)words[at / 8];

		if (function() != CUDA_ERROR_NOT_SUPPORTED) {
			printf("the function at %u does not refuse\n", at);
			return 1;
		}
	}
	for (int i = 0; i < 2; i++)
		if (ask(&table, &other) != CUDA_ERROR_NOT_SUPPORTED || table) {
			puts("another table is not refused");
			return 1;
		}
	if (told(said) != 1) {
		printf("%d lines say which CUPTI is served\n", told(said));
		return 1;
	}
	puts("all is refused, and said once");
	return 0;
}
