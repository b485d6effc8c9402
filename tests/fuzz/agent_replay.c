/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target over the files of a folder, each whole and cut at some lengths (not those
 * with FUZZ_CUTS=0): what CI does with the corpus, without a fuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (64u * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int main(int argc, char **argv)
{
	static uint8_t bytes[FILE_MAX];
	struct dirent *entry;
	unsigned files = 0;
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	const char *cuts = getenv("FUZZ_CUTS");

	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(folder))) {
		char path[1024];
		FILE *file;
		size_t n;

		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (!file)
			continue;
		n = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		LLVMFuzzerTestOneInput(bytes, n);
		for (size_t cut = 1; cut < n && !(cuts && !strcmp(cuts, "0"));
			cut += 1 + n / 16)
			LLVMFuzzerTestOneInput(bytes, cut);
		files++;
	}
	closedir(folder);
	printf("%s: %u files\n", argv[1], files);
	return files ? 0 : 1;
}
