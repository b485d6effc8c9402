/* SPDX-License-Identifier: Apache-2.0
 *
 * What latency_print and its like printed for Prometheus, as OpenMetrics.
 */
#include <stdlib.h>
#include <string.h>

#include "common/latency.h"

/* "# TYPE NAME_total counter": the family is NAME, unless another has that name: then the type
 * is not told. */
static void print_family(FILE *out, const char *text, const char *line, size_t n)
{
	const char *name = line + strlen("# TYPE ");
	size_t length = strcspn(name, " \n");
	int before = (int)(name - line), stem = (int)length - 6;
	const char *rest = name + length;
	char taken[128];

	if (stem <= 0 || strncmp(name + stem, "_total", 6)) {
		fprintf(out, "%.*s\n", (int)n, line);
		return;
	}
	snprintf(taken, sizeof(taken), "# TYPE %.*s ", stem, name);
	if (!strstr(text, taken))
		fprintf(out, "%.*s%.*s\n", before + stem, line, (int)(line + n - rest), rest);
	else if (line[2] == 'H')
		fprintf(out, "%.*s\n", (int)n, line);
}

char *latency_openmetrics(char *text)
{
	char *result = NULL;
	size_t size;
	FILE *out = open_memstream(&result, &size);

	for (const char *line = text; out && line && *line;) {
		size_t n = strcspn(line, "\n");

		if (line[0] == '#')
			print_family(out, text, line, n);
		else
			fprintf(out, "%.*s\n", (int)n, line);
		line += n + (line[n] == '\n');
	}
	free(text);
	if (!out)
		return NULL;
	fputs("# EOF\n", out);
	if (fclose(out)) {
		free(result);
		return NULL;
	}
	return result;
}
