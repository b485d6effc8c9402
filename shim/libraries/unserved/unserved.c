/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that vcuda has no front for yet: every name is there, so that what is linked with
 * them loads, and every call is refused with the library's own status.  The names are assembly
 * that protocol/generate.py writes (protocol/api); what they all come to is here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

/* ADDRESS, a function of LIBRARY, was called and is going to answer ANSWER; LOGGED is the
 * library's, 0 at first.  Any thread. */
void unserved_called(void *address, const char *library, const char *answer, int *logged);

/* Once for each library: natively it works, and not every program shows an error's text. */
void unserved_called(void *address, const char *library, const char *answer, int *logged)
{
	char line[512];
	Dl_info info = {0};
	int n;

	if (__atomic_exchange_n(logged, 1, __ATOMIC_RELAXED))
		return;
	if (!dladdr(address, &info) || !info.dli_sname)
		info.dli_sname = "a function";
	n = snprintf(line, sizeof(line),
		"vcuda: %s of %s was called: vcuda has no front for this library yet, and "
		"refuses its calls (%s)\n",
		info.dli_sname, library, answer);
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody to tell */
}
