/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tensor/fallen.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "protocol/wire/status.h"

#define LOOK_NS (30000 * FRONT_MS) /* between looks whether one is of use again */
#define LOOKED_AT_ANEW "the GPU is looked at anew"
#define DOUBT_NS (10000 * FRONT_MS) /* a hostile worker costs new ones so often */

bool fallen_status(uint32_t status)
{
	return status == STATUS_UNAVAILABLE || status == STATUS_NO_DEVICE ||
	       status == STATUS_ECC || status == STATUS_NVLINK;
}

/* NVIDIA's numbers, of those behind which the GPU's memory is gone, or is of no use before a
 * reset: it stopped, an uncorrectable error of its memory, it fell off the bus, its own
 * processor does not answer. */
static bool is_fatal(uint32_t xid)
{
	static const uint32_t fatal[] = {46, 48, 62, 64, 79, 95, 119, 120, 140, 143};

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (fatal[i] == xid)
			return true;
	return false;
}

void fallen_tell(struct front *front)
{
	struct tensor_message m = {.version = TENSOR_VERSION, .what = TENSOR_FELL};

	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		if (!front->fallen[d].why[0])
			continue;
		memcpy(m.gpu, front->ledger.devices[d].uuid, sizeof(m.gpu));
		snprintf(m.text, sizeof(m.text), "%s", front->fallen[d].why);
		tensors_tell_store(front, &m);
	}
}

static void fell(struct front *front, uint32_t gpu, const char *why)
{
	if (front->fallen[gpu].why[0])
		return;
	snprintf(front->fallen[gpu].why, sizeof(front->fallen[gpu].why), "%s", why);
	log_error("gpu.fell", "gpu=%u text=\"%s\"", gpu, why);
	front->fallen_look_at = wait_now() + LOOK_NS;
	fallen_tell(front);
}

/* Workers that wait without it are of no use to those who want it. */
static void rose(struct front *front, uint32_t gpu)
{
	if (!front->fallen[gpu].why[0])
		return;
	front->fallen[gpu].why[0] = 0;
	log_info("gpu.rose", "gpu=%u", gpu);
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].state == WORKER_READY &&
			front->pool.workers[i].lacks >> gpu & 1)
			pool_stop(front, &front->pool.workers[i], STATUS_OK,
				"a GPU is of use again");
}

uint32_t fallen_gpus(const struct front *front)
{
	uint32_t gpus = 0;

	for (uint32_t d = 0; d < front->ledger.device_count; d++)
		gpus |= front->fallen[d].why[0] ? 1u << d : 0;
	return gpus;
}

static void met(struct front *front, uint32_t gpu, uint32_t status)
{
	char why[sizeof(front->fallen[0].why)];

	snprintf(why, sizeof(why), "GPU %u has fallen: a new worker meets error %u", gpu,
		status);
	fell(front, gpu, why);
}

void fallen_doubt(struct front *front)
{
	uint64_t now = wait_now();

	front->doubts_later = front->doubted_at && now - front->doubted_at < DOUBT_NS;
	if (front->doubts_later)
		return;
	front->doubted_at = now;
	front->doubts = true;
	log_warn("gpu.doubt", "text=\"a worker met an error of the GPU; new ones are made\"");
	for (uint32_t i = 0; i < front->pool.room; i++) {
		struct pool_worker *worker = &front->pool.workers[i];

		if (worker->state == WORKER_READY)
			pool_stop(front, worker, STATUS_OK, LOOKED_AT_ANEW);
		worker->doubted =
			worker->state == WORKER_ASKED || worker->state == WORKER_STARTING;
	}
	pool_balance(front, now);
}

bool fallen_late(struct front *front, struct pool_worker *worker)
{
	if (!worker->doubted)
		return false;
	pool_stop(front, worker, STATUS_OK, LOOKED_AT_ANEW);
	pool_balance(front, wait_now());
	return true;
}

void fallen_failed(struct front *front, const struct handoff *h)
{
	front->doubts = false;
	if (!fallen_status(h->status))
		return;
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		if (h->device && h->device != d + 1)
			continue;
		met(front, d, h->status);
	}
}

void fallen_ready(struct front *front, const struct handoff *h)
{
	front->doubts = false;
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		uint32_t i = 0;

		while (i < h->device_count &&
			memcmp(h->devices[i].uuid, front->ledger.devices[d].uuid, 16))
			i++;
		if (i == h->device_count)
			fell(front, d, "the GPU has fallen: a new worker does not see it");
		else if (h->devices[i].fell)
			met(front, d, (uint32_t)h->devices[i].fell);
		else
			rose(front, d);
	}
}

void fallen_others(struct front *front, const struct handoff *h)
{
	memset(front->fallen, 0, sizeof(front->fallen));
	fallen_ready(front, h);
}

uint64_t fallen_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (front->draining)
		return UINT64_MAX;
	if (front->doubts_later && now - front->doubted_at >= DOUBT_NS)
		fallen_doubt(front);
	if (front->doubts_later)
		next = front->doubted_at + DOUBT_NS;
	if (!fallen_gpus(front))
		return next;
	if (now < front->fallen_look_at)
		return next < front->fallen_look_at ? next : front->fallen_look_at;
	front->fallen_look_at = now + LOOK_NS;
	front->doubts = true;
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].state == WORKER_READY) {
			pool_stop(front, &front->pool.workers[i], STATUS_OK,
				"a GPU that has fallen is looked at anew");
			break;
		}
	pool_balance(front, now);
	return next < front->fallen_look_at ? next : front->fallen_look_at;
}

void fallen_metered(struct front *front, uint32_t gpu, const struct control_gpu *meter)
{
	char why[sizeof(front->fallen[0].why)];

	if (!is_fatal(meter->xid))
		return;
	snprintf(why, sizeof(why), "GPU %u has fallen: NVML tells XID %u", gpu, meter->xid);
	fell(front, gpu, why);
}
