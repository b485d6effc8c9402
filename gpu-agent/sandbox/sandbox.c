/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu-agent/cache/compiled.h"

/* The kernel's OOM killer takes a worker before it takes the front, whose end is everybody's.
 */
#define OOM_WORSE 300
#define OOM_MAX 1000

static uint32_t held; /* the parts so far */
static bool entered;  /* else nothing is to be sealed */

const char *sandbox_part_name(uint32_t part)
{
	switch (part) {
	case SANDBOX_HIDDEN: return "hidden";
	case SANDBOX_CAPABILITIES: return "capabilities";
	case SANDBOX_FILES: return "landlock";
	case SANDBOX_CALLS: return "seccomp";
	default: return "unknown";
	}
}

const char *sandbox_text(char out[SANDBOX_TEXT], uint32_t parts)
{
	size_t n = 0;

	out[0] = 0;
	for (int lacks = 0; lacks < 2; lacks++) {
		const uint32_t these = (lacks ? ~parts : parts) & SANDBOX_ALL;
		const char *between = lacks ? "without " : "";

		for (uint32_t part = 1; part < SANDBOX_ALL; part <<= 1) {
			if (!(these & part))
				continue;
			n += (size_t)snprintf(out + n, SANDBOX_TEXT - n, "%s%s%s",
				n ? ", " : "", between, sandbox_part_name(part));
			between = "";
		}
	}
	if (parts & SANDBOX_CONNECTS)
		n += (size_t)snprintf(out + n, SANDBOX_TEXT - n, ", connections allowed");
	if (parts & SANDBOX_USER)
		snprintf(out + n, SANDBOX_TEXT - n, ", a user of its own");
	return out;
}

const char *sandbox_mode(uint32_t parts)
{
	static const char *const modes[] = {"none", "landlock", "seccomp", "landlock+seccomp",
		"none, connections allowed", "landlock, connections allowed",
		"seccomp, connections allowed", "landlock+seccomp, connections allowed"};

	return modes[!!(parts & SANDBOX_FILES) + 2 * !!(parts & SANDBOX_CALLS) +
		     4 * !!(parts & SANDBOX_CONNECTS)];
}

void sandbox_hide(void)
{
	if (SANDBOX_SANITIZER)
		return;
	if (!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		held |= SANDBOX_HIDDEN;
}

static void sandbox_oom(void)
{
	char text[16] = "";
	cleanup_close int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	int score, n;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	score = atoi(text) + OOM_WORSE;
	n = snprintf(text, sizeof(text), "%d", score > OOM_MAX ? OOM_MAX : score);
	if (pwrite(fd, text, (size_t)n, 0) != n)
		log_debug("sandbox.oom", "error=\"%s\"", strerror(errno));
}

/* All sets, the bounding one too where that is allowed. 0 or -errno. */
static int sandbox_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

static void sandbox_note(enum sandbox_part part, int ret)
{
	if (ret)
		log_debug("sandbox.lacks", "part=%s error=\"%s\"", sandbox_part_name(part),
			strerror(-ret));
	else
		held |= part;
}

int sandbox_enter(const struct agent_config *config, int *listener, struct error *error)
{
	*listener = -1;
	error->code = 0;
	sandbox_oom(); /* a process that is not dumpable may not write there */
	sandbox_hide();
	if (config->sandbox_off) {
		compiled_leave();
		return 0;
	}
	if (config->worker_user) {
		if (sandbox_user("worker_users", config->worker_user, error))
			return -error->code;
		held |= SANDBOX_USER;
		sandbox_hide(); /* again: another user is dumpable by default */
	}
	/* Started by people with --role it has not given it up yet. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sandbox_note(SANDBOX_FILES, sandbox_files(config, error));
	if (error->code)
		return -error->code;
	if (!(held & SANDBOX_FILES))
		compiled_leave(); /* others could write there */
	sandbox_note(SANDBOX_CAPABILITIES, sandbox_capabilities());
	sandbox_note(SANDBOX_CALLS, sandbox_calls_start(config->nccl.allowed, false, listener));
	if (*listener >= 0)
		held |= SANDBOX_COUNTED;
	if (config->nccl.allowed)
		held |= SANDBOX_CONNECTS;
	entered = true;
	return 0;
}

int sandbox_enter_store(const struct agent_config *config, struct error *error)
{
	error->code = 0;
	sandbox_hide();
	if (config->sandbox_off)
		return 0;
	if (config->store.user) {
		if (sandbox_user("store.user", config->store.user, error))
			return -error->code;
		held |= SANDBOX_USER;
		sandbox_hide();
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sandbox_note(SANDBOX_FILES, sandbox_files_store(config, error));
	if (error->code)
		return -error->code;
	sandbox_note(SANDBOX_CAPABILITIES, sandbox_capabilities());
	/* A registry at a Unix socket is a connection too. */
	sandbox_note(SANDBOX_CALLS, sandbox_calls_start(config->store.registry[0],
					    sandbox_store_watches(config), NULL));
	if (config->store.registry[0])
		held |= SANDBOX_CONNECTS;
	entered = true;
	return 0;
}

int sandbox_enter_uploads(const struct agent_config *config, struct error *error)
{
	error->code = 0;
	sandbox_oom(); /* what it has can be uploaded again */
	sandbox_hide();
	if (config->sandbox_off)
		return 0;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sandbox_note(SANDBOX_FILES, sandbox_files_none(error));
	if (error->code)
		return -error->code;
	sandbox_note(SANDBOX_CAPABILITIES, sandbox_capabilities());
	sandbox_note(SANDBOX_CALLS, sandbox_calls_start(false, false, NULL));
	entered = true;
	return 0;
}

uint32_t sandbox_seal(void)
{
	if (entered && !(held & SANDBOX_COUNTED) && sandbox_calls_warm(held & SANDBOX_CONNECTS))
		held &= ~(uint32_t)SANDBOX_CALLS;
	return held;
}

/* --- the supervisor ----------------------------------------------------------------------- */

/* How many device files it may have to make, and how long that may take: it loads modules. */
#define GPUS_MAX 16
#define MAKE_SECONDS 30

static int count_gpus(void)
{
	DIR *dir = opendir("/proc/driver/nvidia/gpus");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)) && n < GPUS_MAX)
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* `nvidia-modprobe -u -c=0 -c=1 …`, as the driver calls it. */
static void make_device_files(int gpus)
{
	char program[] = "nvidia-modprobe", uvm[] = "-u", minors[GPUS_MAX][16];
	char *argv[GPUS_MAX + 3] = {program, uvm};
	pid_t pid;

	for (int i = 0; i < gpus; i++) {
		snprintf(minors[i], sizeof(minors[i]), "-c=%d", i);
		argv[2 + i] = minors[i];
	}
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		alarm(MAKE_SECONDS);
		close_range(3, ~0u, 0);
		execvp(program, argv);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void sandbox_device_files(const struct agent_config *config)
{
	if (config->sandbox_off || config->driver != DRIVER_NVIDIA || geteuid() ||
		!access("/dev/nvidia-uvm", F_OK))
		return;
	make_device_files(1); /* the module too: only then the GPUs can be counted */
	if (count_gpus() > 1)
		make_device_files(count_gpus());
}
