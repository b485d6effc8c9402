/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics of the devices: what the ledger says of their memory, and what the meter says.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/http/metrics_core.h"
#include "gpu-agent/front/http/state.h"

void metrics_gpu_labels(FILE *out, const struct front *front, uint32_t gpu)
{
	const struct ledger_device *d = &front->ledger.devices[gpu];

	fprintf(out, "gpu=\"%u\",UUID=\"", gpu);
	state_uuid(out, d->uuid);
	fprintf(out, "\",modelName=\"%s\"", d->name);
}

void metrics_memory(FILE *out, const struct front *front)
{
	static const char *const names[][2] = {
		{"total", "Memory of the device."},
		{"reserved", "Kept free by configuration."},
		{"foreign", "Used by others than this agent when last seen."},
		{"context", "Taken by the contexts of workers."},
		{"leased", "Leased to sessions."},
		{"used", "In use by sessions."},
	};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		char name[64];

		snprintf(name, sizeof(name), "vcuda_agent_device_memory_%s_bytes", names[n][0]);
		metrics_head(out, name, "gauge", names[n][1]);
		for (uint32_t i = 0; i < front->ledger.device_count; i++) {
			const struct ledger_device *d = &front->ledger.devices[i];
			const uint64_t values[] = {d->total, d->reserve, d->foreign,
				d->contexts, d->leased, state_used(front, i, NULL)};

			fprintf(out, "%s{", name);
			metrics_gpu_labels(out, front, i);
			fprintf(out, "} %" PRIu64 "\n", values[n]);
		}
	}
	metrics_head(out, "vcuda_agent_device_fallen", "gauge",
		"1: the device is of no use, and sessions get the others.");
	for (uint32_t i = 0; i < front->ledger.device_count; i++) {
		fprintf(out, "vcuda_agent_device_fallen{");
		metrics_gpu_labels(out, front, i);
		fprintf(out, "} %d\n", front->fallen[i].why[0] != 0);
	}
	metrics_one(out, "vcuda_agent_leases_refused_total", "counter",
		"Leases that could not grow.", front->counters.lease_refused);
	metrics_one(out, "vcuda_agent_ledger_bugs_total", "counter",
		"Accounts that did not add up (a bug in the agent).", front->ledger.bugs);
}

/* --- what the meter says ------------------------------------------------------------------ */

static double busy(const struct control_gpu *gpu)
{
	return gpu->busy / 100.0;
}

static double memory_busy(const struct control_gpu *gpu)
{
	return gpu->memory_busy / 100.0;
}

static double memory_used(const struct control_gpu *gpu)
{
	return (double)gpu->memory_used;
}

static double watts(const struct control_gpu *gpu)
{
	return gpu->milliwatts / 1000.0;
}

static double celsius(const struct control_gpu *gpu)
{
	return gpu->celsius;
}

void metrics_meters(FILE *out, const struct front *front)
{
	static const struct {
		const char *name, *help;
		double (*of)(const struct control_gpu *gpu);
	} meters[] = {
		{"vcuda_agent_device_utilization_ratio",
			"Part of the time in which a kernel ran, by NVML.", busy},
		{"vcuda_agent_device_memory_utilization_ratio",
			"Part of the time in which memory was read or written, by NVML.",
			memory_busy},
		{"vcuda_agent_device_memory_in_use_bytes", "In use by whomever, by NVML.",
			memory_used},
		{"vcuda_agent_device_power_watts", "What the device takes, by NVML.", watts},
		{"vcuda_agent_device_temperature_celsius", "Of the device, by NVML.", celsius},
	};
	uint64_t now = wait_now();

	for (size_t m = 0; m < sizeof(meters) / sizeof(meters[0]); m++) {
		bool first = true;

		for (uint32_t d = 0; d < front->ledger.device_count; d++) {
			double value = meters[m].of(&front->meters[d]);

			if (!front->metered_at[d] || value < 0 ||
				now - front->metered_at[d] > METER_STALE_NS)
				continue;
			if (first)
				metrics_head(out, meters[m].name, "gauge", meters[m].help);
			first = false;
			fprintf(out, "%s{", meters[m].name);
			metrics_gpu_labels(out, front, d);
			fprintf(out, "} %g\n", value);
		}
	}
}
