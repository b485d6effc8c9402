/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker has ready before its session: the driver, its devices with their contexts and
 * windows, pinned memory.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/limits/extra.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/worker_state.h"

/* The window: the wanted place, else any place, else half as much. */
static CUresult worker_reserve(struct worker *w, struct worker_device *d, uint32_t index)
{
	CUdeviceptr at = 0;
	CUresult status;
	uint64_t bytes;

	for (bytes = WINDOW_BYTES; bytes >= 1ull << 36; bytes /= 2) {
		status = w->cuda.cuMemAddressReserve(
			&at, bytes, d->granularity, WINDOW_BASE + index * WINDOW_BYTES, 0);
		if (!status)
			break;
	}
	if (status)
		return status;
	d->window = at;
	d->window_bytes = bytes;
	d->mapped = calloc(bytes / d->granularity / 64 + 1, sizeof(*d->mapped));
	d->mappings = calloc(bytes / d->granularity + 1, sizeof(*d->mappings));
	return d->mapped && d->mappings ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void worker_snapshot(struct worker *w, struct worker_device *d)
{
	struct open_device *o = &d->open;
	size_t value;

	w->cuda.cuDeviceGetName(o->name, sizeof(o->name), d->device);
	w->cuda.cuDeviceGetUuid((CUuuid *)o->uuid, d->device);
	w->cuda.cuDeviceTotalMem(&value, d->device);
	o->total_memory = value;
	o->window = d->window;
	o->window_bytes = d->window_bytes;
	o->granularity = d->granularity;
	if (w->config->driver == DRIVER_SOFTWARE)
		o->flags |= OPEN_PTX_ONLY;
	for (int a = 1; a < OPEN_ATTRIBUTES; a++)
		if (!w->cuda.cuDeviceGetAttribute(
			    &o->attributes[a], (CUdevice_attribute)a, d->device))
			o->attribute_known[a / 8] |= (uint8_t)(1u << a % 8);
	if (w->cuda.cuDeviceGetPCIBusId)
		w->cuda.cuDeviceGetPCIBusId(o->pci_bus_id, sizeof(o->pci_bus_id), d->device);
	w->cuda.cuCtxGetStreamPriorityRange(
		&o->stream_priority_least, &o->stream_priority_greatest);
	for (int l = 0; l < OPEN_LIMITS; l++)
		o->limits[l] = w->cuda.cuCtxGetLimit(&value, (CUlimit)l) ? ~0ull : value;
}

static CUresult worker_open_device(struct worker *w, uint32_t index, struct handoff *ready)
{
	struct worker_device *d = &w->devices[index];
	struct handoff_device *told = &ready->devices[index];
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	uint16_t context = (uint16_t)CONTEXT_PRIMARY(index);
	size_t granularity, free_memory = 0, total = 0;
	CUresult status;

	status = w->cuda.cuDeviceGet(&d->device, (int)index);
	if (!status)
		status = w->cuda.cuDevicePrimaryCtxRetain(&d->primary, d->device);
	if (status)
		return status;
	w->contexts[context] = d->primary;
	status = worker_use(w, context);
	prop.location.id = d->device;
	if (!status)
		status = w->cuda.cuMemGetAllocationGranularity(
			&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	if (status)
		return status;
	d->granularity = granularity;
	status = worker_reserve(w, d, index);
	if (status)
		return status;
	context_stream_init(w, context);
	worker_snapshot(w, d);
	w->cuda.cuMemGetInfo(&free_memory, &total);
	memcpy(told->uuid, d->open.uuid, sizeof(told->uuid));
	snprintf(told->name, sizeof(told->name), "%.*s", (int)sizeof(told->name) - 1,
		d->open.name);
	told->total_memory = total;
	told->free_memory = free_memory;
	return CUDA_SUCCESS;
}

/* As the front reads them (front/tensor/fallen.c): it is the GPU, and nothing that this worker
 * does.
 */
static bool device_fell(CUresult status)
{
	return status == CUDA_ERROR_DEVICE_UNAVAILABLE || status == CUDA_ERROR_NO_DEVICE ||
	       status == CUDA_ERROR_ECC_UNCORRECTABLE ||
	       status == CUDA_ERROR_NVLINK_UNCORRECTABLE;
}

/* One that has fallen takes nothing from the others: of it is said what it is. */
static CUresult worker_open_fallen(
	struct worker *w, uint32_t index, CUresult fell, struct handoff *ready)
{
	struct worker_device *d = &w->devices[index];
	struct handoff_device *told = &ready->devices[index];
	size_t total = 0;
	CUresult status;

	w->contexts[CONTEXT_PRIMARY(index)] = d->primary = NULL;
	status = w->cuda.cuDeviceGetName(told->name, sizeof(told->name), d->device);
	if (!status)
		status = w->cuda.cuDeviceGetUuid((CUuuid *)told->uuid, d->device);
	if (!status)
		status = w->cuda.cuDeviceTotalMem(&total, d->device);
	told->total_memory = total;
	told->fell = (uint64_t)fell;
	return status ? fell : CUDA_SUCCESS;
}

/* All that are of use; *first: the first one. An error where there is none. */
static CUresult worker_open_devices(struct worker *w, uint32_t *first, struct handoff *ready)
{
	CUresult fell = CUDA_ERROR_NO_DEVICE;

	*first = w->device_count;
	for (uint32_t i = 0; i < w->device_count; i++) {
		CUresult status = worker_open_device(w, i, ready);

		ready->device = i + 1;
		if (device_fell(status)) {
			fell = status;
			status = worker_open_fallen(w, i, fell, ready);
		} else if (!status && *first == w->device_count) {
			*first = i;
		}
		if (status)
			return status;
	}
	ready->device = w->device_count == 1 ? 1 : 0;
	return *first < w->device_count ? CUDA_SUCCESS : fell;
}

/* NVIDIA's driver has its version in its file's name: libcuda.so.580.95.05. */
static void driver_release(const struct worker *w, int version, char *text, size_t n)
{
	char real[PATH_MAX];
	struct link_map *map = NULL;
	const char *at;

	text[0] = 0;
	if (w->config->driver == DRIVER_SOFTWARE) {
		snprintf(text, n, "%d.%d.0", version / 1000, version % 1000 / 10);
		return;
	}
	if (dlinfo(w->cuda.library, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, real))
		return;
	at = strstr(real, ".so.");
	if (at && strchr(at + 4, '.'))
		snprintf(text, n, "%.31s", at + 4);
}

int worker_prepare(struct worker *w, struct handoff *ready)
{
	struct error error = {0};
	int count = 0, version = 0;
	uint32_t first = 0;
	CUresult status;
	const char *step;

	if (w->config->launch_timeout_ms && w->config->driver != DRIVER_NVIDIA) {
		char text[16];

		snprintf(text, sizeof(text), "%u", w->config->launch_timeout_ms);
		setenv("VCUDA_SOFTGPU_TIMEOUT_MS", text, 1);
	}
	if (cuda_driver_open(&w->cuda, w->config->driver_path, &error)) {
		snprintf(ready->text, sizeof(ready->text), "%.135s%s", error.text,
			w->config->driver == DRIVER_NVIDIA
				? "; install the NVIDIA driver or set driver: software"
			: w->config->driver == DRIVER_FILE
				? "; driver: is a libcuda, nvidia or software"
				: "");
		ready->status = CUDA_ERROR_SYSTEM_NOT_READY;
		return -1;
	}
	extra_open(w);
	step = "cuInit";
	status = w->cuda.cuInit(0);
	if (!status) {
		step = "cuDeviceGetCount";
		status = w->cuda.cuDeviceGetCount(&count);
	}
	if (!status && !count)
		status = CUDA_ERROR_NO_DEVICE;
	w->device_count = count > HANDOFF_DEVICES ? HANDOFF_DEVICES : (uint32_t)count;
	if (!status) {
		step = "opening the device";
		status = worker_open_devices(w, &first, ready);
	}
	if (!status) {
		step = "pinned memory";
		ready->device = 0;
		worker_use(w, (uint16_t)CONTEXT_PRIMARY(first));
		if (staging_open(w, &w->in) || staging_open(w, &w->out))
			status = CUDA_ERROR_OUT_OF_MEMORY;
		worker_mirror_open(w);
	}
	if (status) {
		snprintf(ready->text, sizeof(ready->text), "%.100s: %s failed: %.40s",
			w->config->driver_path, step, worker_error_name(w, status));
		ready->status = (uint32_t)status;
		return -1;
	}
	w->receiver.bytes = malloc(RECEIVE_BYTES);
	w->receiver.body = aligned_alloc(64, FRAME_BODY_MAX);
	if (!w->receiver.bytes || !w->receiver.body || send_window_open(&w->sender.window) ||
		host_function_open(w) || output_open(w)) {
		snprintf(ready->text, sizeof(ready->text), "out of memory");
		ready->status = CUDA_ERROR_OUT_OF_MEMORY;
		return -1;
	}
	w->cuda.cuDriverGetVersion(&version);
	ready->driver_version = (uint32_t)version;
	ready->device_count = w->device_count;
	snprintf(ready->text, sizeof(ready->text), "%.190s", w->config->driver_path);
	driver_release(w, version, ready->release, sizeof(ready->release));
	return 0;
}
