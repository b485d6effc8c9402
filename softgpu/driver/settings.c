/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables of the software GPU, and its log lines.  docs/SOFTGPU.md lists
 * them.
 */
#include "softgpu/driver/softgpu.h"
#include "softgpu/driver/task.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct settings settings = {.log_fd = STDERR_FILENO};

__attribute__((format(printf, 1, 0))) static void log_line(const char *format, va_list args)
{
	int saved = errno;
	char line[512];
	int at = snprintf(line, sizeof(line), "softgpu: ");

	/* One write a line, so that lines of several threads do not mix. */
	at += vsnprintf(line + at, sizeof(line) - (size_t)at - 1, format, args);
	if ((size_t)at > sizeof(line) - 2)
		at = (int)sizeof(line) - 2;
	line[at] = '\n';
	if (write(settings.log_fd, line, (size_t)at + 1) < 0)
		errno = saved; /* nowhere left to say it */
	errno = saved;
}

void soft_log_note(const char *format, ...)
{
	va_list args;

	if (!settings.log)
		return;
	va_start(args, format);
	log_line(format, args);
	va_end(args);
}

void soft_log_problem(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(format, args);
	va_end(args);
}

void cuSoftgpuProblem(const char *text)
{
	soft_log_problem("%s", text);
}

/* A number with K, M, G or T behind it, in bytes. */
static bool parse_size(const char *text, uint64_t *value)
{
	char *end;
	unsigned shift = 0;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	if (errno)
		return false;
	switch (*end) {
	case 'K':
	case 'k': shift = 10; break;
	case 'M':
	case 'm': shift = 20; break;
	case 'G':
	case 'g': shift = 30; break;
	case 'T':
	case 't': shift = 40; break;
	default: break;
	}
	if (shift) {
		end++;
		if (end[0] == 'i' && end[1] == 'B')
			end += 2;
	}
	if (*end || *value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	return true;
}

static bool read_size(const char *name, uint64_t low, uint64_t high, uint64_t *value)
{
	const char *text = getenv(name);

	if (!text || !*text)
		return true;
	if (!parse_size(text, value) || *value < low || *value > high) {
		soft_log_problem("%s=%s: expected a number from %llu to %llu", name, text,
			(unsigned long long)low, (unsigned long long)high);
		return false;
	}
	return true;
}

/* PTX of that release is the newest that is read. */
#define VERSION_LOW 12000
#define VERSION_HIGH 13050

int soft_driver_version(void)
{
	const char *text = getenv("VCUDA_SOFTGPU_DRIVER_VERSION");
	int version = 0;

	if (!text || !*text)
		return DRIVER_VERSION;
	/* As CUDA's releases are written: 13.4. */
	if (text[0] == '1' && text[1] >= '0' && text[1] <= '9' && text[2] == '.' &&
		text[3] >= '0' && text[3] <= '9' && !text[4])
		version = 10000 + 1000 * (text[1] - '0') + 10 * (text[3] - '0');
	return version >= VERSION_LOW && version <= VERSION_HIGH ? version : 0;
}

static bool is(const char *text, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(text, word, n);
}

static bool read_faults(void)
{
	const char *text = getenv("VCUDA_SOFTGPU_FAULT");
	char copy[256], *rest = copy, *item;

	if (!text || !*text)
		return true;
	if (strlen(text) >= sizeof(copy)) {
		soft_log_problem(
			"VCUDA_SOFTGPU_FAULT: longer than %zu characters", sizeof(copy) - 1);
		return false;
	}
	strcpy(copy, text);
	while ((item = strsep(&rest, ","))) {
		char *equals = strchr(item, '=');
		uint64_t value = 0;
		bool good = equals && parse_size(equals + 1, &value) && value;
		size_t length = equals ? (size_t)(equals - item) : 0;

		if (good && is(item, length, "oom-at"))
			settings.fault_oom_at = value;
		else if (good && is(item, length, "launch-fault") && value <= UINT32_MAX)
			settings.fault_launch = (unsigned)value;
		else if (good && is(item, length, "hang-launch") && value <= UINT32_MAX)
			settings.fault_hang = (unsigned)value;
		else if (equals && is(item, length, "fall-with") &&
			 strlen(equals + 1) < sizeof(settings.fault_fall))
			strcpy(settings.fault_fall, equals + 1);
		else if (equals && is(item, length, "others") &&
			 strlen(equals + 1) < sizeof(settings.fault_others))
			strcpy(settings.fault_others, equals + 1);
		else if (good && is(item, length, "no-peers"))
			settings.fault_no_peers = true;
		else if (good && is(item, length, "wrong-result") && value <= UINT32_MAX)
			settings.fault_wrong = (unsigned)value;
		else {
			soft_log_problem("VCUDA_SOFTGPU_FAULT: '%s': expected oom-at=BYTES, "
					 "launch-fault=N, hang-launch=N, fall-with=FILE, "
					 "others=FILE, no-peers=1 or wrong-result=N",
				item);
			return false;
		}
	}
	return true;
}

static void mix(uint64_t hash[2], const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		for (unsigned k = 0; k < 2; k++)
			hash[k] = (hash[k] ^ (unsigned char)text[i]) * 0x100000001b3ull;
}

/* Another for each machine or container, the same in every run of it: what the variable says,
 * or the host's name and the machine's identity.  (Images have none, or all of them the same.)
 */
static void read_identity(void)
{
	const char *given = getenv("VCUDA_SOFTGPU_IDENTITY");
	uint64_t hash[2] = {0xcbf29ce484222325ull, 0x84222325cbf29ce4ull};
	char text[256];
	FILE *file;

	if (given && *given) {
		mix(hash, given, strlen(given));
	} else {
		if (!gethostname(text, sizeof(text)))
			mix(hash, text, strnlen(text, sizeof(text)));
		file = fopen("/etc/machine-id", "re");
		if (file) {
			mix(hash, text, fread(text, 1, sizeof(text), file));
			fclose(file);
		}
	}
	memcpy(settings.identity, hash, sizeof(settings.identity));
}

bool soft_settings_read(void)
{
	const char *log = getenv("VCUDA_SOFTGPU_LOG");
	uint64_t count = 1, memory = 4 * GIB, timeout = 0, log_fd = STDERR_FILENO;

	settings.log = log && *log && strcmp(log, "0");
	if (!read_size("VCUDA_SOFTGPU_LOG_FD", 1, 65535, &log_fd) ||
		!read_size("VCUDA_SOFTGPU_DEVICES", 0, DEVICES_MAX, &count) ||
		!read_size("VCUDA_SOFTGPU_MEMORY", 2 * MIB, 1024 * GIB, &memory) ||
		!read_size("VCUDA_SOFTGPU_TIMEOUT_MS", 0, 86400000, &timeout) || !read_faults())
		return false;
	if (!soft_driver_version()) {
		soft_log_problem(
			"VCUDA_SOFTGPU_DRIVER_VERSION=%s: expected a release of CUDA from "
			"12.0 to 13.5",
			getenv("VCUDA_SOFTGPU_DRIVER_VERSION"));
		return false;
	}
	settings.log_fd = (int)log_fd;
	settings.devices = (unsigned)count;
	settings.memory = memory & ~(PAGE - 1);
	settings.timeout_ns = timeout * 1000000;
	read_identity();
	return true;
}

/* A file that nobody may open still has a size. */
size_t device_others(void)
{
	struct stat about;

	if (!settings.fault_others[0] || stat(settings.fault_others, &about))
		return 0;
	return (size_t)about.st_size < settings.memory ? (size_t)about.st_size
						       : settings.memory;
}

bool device_fallen(int ordinal)
{
	char one[sizeof(settings.fault_fall) + 16];

	if (!settings.fault_fall[0])
		return false;
	snprintf(one, sizeof(one), "%s.%u", settings.fault_fall, settings.numbers[ordinal]);
	return !access(settings.fault_fall, F_OK) || !access(one, F_OK);
}
