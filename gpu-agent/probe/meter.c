/* SPDX-License-Identifier: Apache-2.0
 *
 * The few functions of NVML are declared here as NVIDIA's header has them: it is no part of
 * what the front is built with.
 */
#include "gpu-agent/probe/meter.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/control.h"

#define METER_SECONDS 5
#define METER_STUCK_SECONDS 60 /* a driver that does not answer must not hold a process */
#define METER_UUID 96
#define METER_TEMPERATURE 0 /* NVML_TEMPERATURE_GPU */

struct meter_utilization {
	unsigned int gpu, memory; /* percent */
};

struct meter_memory {
	unsigned long long total, free, used;
};

struct meter_event {
	void *device;
	unsigned long long type, data;
	unsigned int instance, compute;
};
#define METER_XID 8ull	/* nvmlEventTypeXidCriticalError; the event's data is its number */
#define METER_EVENTS 64 /* looked at in a turn */
#define METER_DEVICES 64

struct meter {
	void *library;
	int (*init)(void);
	int (*count)(unsigned int *count);
	int (*device)(unsigned int index, void **device);
	int (*uuid)(void *device, char *text, unsigned int length);
	int (*utilization)(void *device, struct meter_utilization *utilization);
	int (*memory)(void *device, struct meter_memory *memory);
	int (*power)(void *device, unsigned int *milliwatts);
	int (*temperature)(void *device, int sensor, unsigned int *celsius);
	int (*events_make)(void **set);
	int (*events_want)(void *device, unsigned long long types, void *set);
	int (*events_next)(void *set, struct meter_event *event, unsigned int ms);
	void *events;	      /* NULL: none are told */
	unsigned int watched; /* devices, from the first on */
	unsigned int xids[METER_DEVICES];
};

static void find(const struct meter *meter, const char *name, void *function)
{
	void *found = dlsym(meter->library, name);

	memcpy(function, &found, sizeof(found));
}

static bool meter_open(struct meter *meter)
{
	meter->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!meter->library) {
		log_info("meter.missing", "error=\"%s\"", dlerror());
		return false;
	}
	find(meter, "nvmlInit_v2", &meter->init);
	find(meter, "nvmlDeviceGetCount_v2", &meter->count);
	find(meter, "nvmlDeviceGetHandleByIndex_v2", &meter->device);
	find(meter, "nvmlDeviceGetUUID", &meter->uuid);
	find(meter, "nvmlDeviceGetUtilizationRates", &meter->utilization);
	find(meter, "nvmlDeviceGetMemoryInfo", &meter->memory);
	find(meter, "nvmlDeviceGetPowerUsage", &meter->power);
	find(meter, "nvmlDeviceGetTemperature", &meter->temperature);
	find(meter, "nvmlEventSetCreate", &meter->events_make);
	find(meter, "nvmlDeviceRegisterEvents", &meter->events_want);
	find(meter, "nvmlEventSetWait_v2", &meter->events_next);
	if (meter->init && meter->count && meter->device && meter->uuid && !meter->init())
		return true;
	log_info("meter.missing", "error=\"nvmlInit_v2 does not succeed\"");
	return false;
}

/* The device's XIDs are told from now on, where NVML tells them. */
static void watch_device(struct meter *meter, void *device)
{
	if (!meter->events && meter->events_make && meter->events_want && meter->events_next &&
		meter->events_make(&meter->events))
		meter->events = NULL;
	if (meter->events)
		meter->events_want(device, METER_XID, meter->events);
}

/* What has happened since the last time. */
static void hear_events(struct meter *meter, unsigned int count)
{
	struct meter_event event;
	void *device;

	for (unsigned int i = meter->watched; i < count && i < METER_DEVICES; i++) {
		if (!meter->device(i, &device))
			watch_device(meter, device);
		meter->watched = i + 1;
	}
	memset(meter->xids, 0, sizeof(meter->xids));
	for (int n = 0; meter->events && n < METER_EVENTS; n++) {
		if (meter->events_next(meter->events, &event, 0))
			return;
		for (unsigned int i = 0; i < meter->watched; i++)
			if (event.type == METER_XID && !meter->device(i, &device) &&
				device == event.device)
				meter->xids[i] = (unsigned int)event.data;
	}
}

/* What is not known of it stays negative. */
static void read_device(const struct meter *meter, void *device, struct control_gpu *gpu)
{
	struct meter_utilization utilization;
	struct meter_memory memory;
	unsigned int value;

	if (meter->utilization && !meter->utilization(device, &utilization)) {
		gpu->busy = (int32_t)utilization.gpu;
		gpu->memory_busy = (int32_t)utilization.memory;
	}
	if (meter->memory && !meter->memory(device, &memory))
		gpu->memory_used = (int64_t)memory.used;
	if (meter->power && !meter->power(device, &value))
		gpu->milliwatts = (int32_t)value;
	if (meter->temperature && !meter->temperature(device, METER_TEMPERATURE, &value))
		gpu->celsius = (int32_t)value;
}

static bool say(const struct meter *meter, unsigned int index, int fd)
{
	struct control c = {.what = CONTROL_GPU, .number = index};
	struct control_gpu gpu = {.busy = -1,
		.memory_busy = -1,
		.memory_used = -1,
		.milliwatts = -1,
		.celsius = -1};
	char uuid[METER_UUID] = "";
	void *device;

	if (meter->device(index, &device) || meter->uuid(device, uuid, sizeof(uuid) - 1))
		return true;
	snprintf(gpu.uuid, sizeof(gpu.uuid), "%.40s", uuid);
	read_device(meter, device, &gpu);
	gpu.xid = index < METER_DEVICES ? meter->xids[index] : 0;
	_Static_assert(sizeof(gpu) <= sizeof(c.text), "it travels in the text's place");
	memcpy(c.text, &gpu, sizeof(gpu));
	return send(fd, &c, sizeof(c), MSG_NOSIGNAL) == (ssize_t)sizeof(c);
}

void meter_run(const struct agent_config *config, int fd)
{
	struct meter meter = {0};
	unsigned int count = 0;
	bool heard = true;

	if (config->driver == DRIVER_SOFTWARE)
		return;
	alarm(METER_STUCK_SECONDS);
	if (!meter_open(&meter))
		return;
	while (heard) {
		alarm(METER_STUCK_SECONDS);
		if (meter.count(&count))
			return;
		hear_events(&meter, count);
		for (unsigned int i = 0; i < count && heard; i++)
			heard = say(&meter, i, fd);
		sleep(METER_SECONDS);
	}
}
