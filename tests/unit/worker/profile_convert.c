/* SPDX-License-Identifier: Apache-2.0
 *
 * What a record of CUPTI's says, as it travels: each field has a number of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/worker/libraries/cupti/profile.h"

static const CUpti_ActivityKernel10 kernel = {
	.kind = CUPTI_ACTIVITY_KIND_KERNEL,
	.cacheConfig.both = 0x21,
	.sharedMemoryConfig = 2,
	.registersPerThread = 300,
	.partitionedGlobalCacheRequested = 1,
	.partitionedGlobalCacheExecuted = 3,
	.start = 1000,
	.end = 2000,
	.completed = 3000,
	.deviceId = 4,
	.contextId = 5,
	.streamId = 6,
	.gridX = 7,
	.gridY = 8,
	.gridZ = 9,
	.blockX = 10,
	.blockY = 11,
	.blockZ = 12,
	.staticSharedMemory = 13,
	.dynamicSharedMemory = 14,
	.localMemoryPerThread = 15,
	.localMemoryTotal = 16,
	.correlationId = 17,
	.gridId = -18,
	.name = "_Z4fillPffi",
	.launchType = 1,
	.isSharedMemoryCarveoutRequested = 1,
	.sharedMemoryCarveoutRequested = 50,
	.sharedMemoryExecuted = 32768,
	.graphNodeId = 19ull << 32,
	.graphId = 19,
	.channelID = 20,
	.channelType = 1,
	.clusterX = 2,
	.clusterY = 3,
	.clusterZ = 4,
	.clusterSchedulingPolicy = 1,
	.localMemoryTotal_v2 = 1ull << 33,
	.maxPotentialClusterSize = 8,
	.maxActiveClusters = 66,
};

static void a_kernel_says_all(void **state)
{
	const struct profile_record expected = {.kind = PROFILE_KERNEL,
		.start = 1000,
		.end = 2000,
		.completed = 3000,
		.node = 19ull << 32,
		.device = 4,
		.context = 5,
		.stream = 6,
		.graph = 19,
		.launch = 17,
		.channel = 20,
		.channel_type = 1,
		.kernel = {
			.grid = {7, 8, 9},
			.block = {10, 11, 12},
			.cluster = {2, 3, 4},
			.static_shared = 13,
			.dynamic_shared = 14,
			.shared_executed = 32768,
			.local_thread = 15,
			.registers = 300,
			.local_total = 1ull << 33,
			.grid_id = -18,
			.cluster_policy = 1,
			.max_cluster = 8,
			.max_active_clusters = 66,
			.cache_config = 0x21,
			.shared_config = 2,
			.launch_type = 1,
			.carveout_requested = 1,
			.carveout = 50,
			.partitioned_requested = 1,
			.partitioned_executed = 3,
		}};
	struct profile_record record;
	const char *name;

	(void)state;
	assert_true(profile_convert((const void *)&kernel, 18, &record, &name));
	assert_string_equal(name, "_Z4fillPffi");
	assert_memory_equal(&record, &expected, sizeof(record));
}

static const CUpti_ActivityMemcpy6 copy = {
	.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
	.copyKind = 1,
	.srcKind = 2,
	.dstKind = 3,
	.flags = 1,
	.bytes = 1ull << 34,
	.start = 5,
	.end = 6,
	.deviceId = 1,
	.contextId = 2,
	.streamId = 3,
	.correlationId = 4,
	.runtimeCorrelationId = 9,
	.graphNodeId = 7,
	.graphId = 8,
	.channelID = 9,
	.channelType = 2,
	.copyCount = 4,
};

static void copies_and_fills_say_all(void **state)
{
	const CUpti_ActivityMemcpyPtoP4 peers = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		.copyKind = 10,
		.srcKind = 3,
		.dstKind = 3,
		.bytes = 99,
		.srcDeviceId = 1,
		.srcContextId = 2,
		.dstDeviceId = 3,
		.dstContextId = 4,
		.correlationId = 5};
	const CUpti_ActivityMemset4 fill = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		.value = 0x12345678,
		.bytes = 64,
		.start = 10,
		.end = 11,
		.correlationId = 12,
		.flags = 1,
		.memoryKind = 3,
		.channelID = 2,
		.channelType = 1};
	const CUpti_ActivityGraphTrace2 graph = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		.correlationId = 1,
		.start = 2,
		.end = 3,
		.deviceId = 4,
		.graphId = 5,
		.contextId = 6,
		.streamId = 7};
	const CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_DRIVER};
	struct profile_record record;
	const char *name;

	(void)state;
	assert_true(profile_convert((const void *)&copy, 26, &record, &name));
	assert_null(name);
	assert_int_equal(record.kind, PROFILE_COPY);
	assert_int_equal(record.copy.bytes, 1ull << 34);
	assert_int_equal(record.copy.count, 4);
	assert_int_equal(record.copy.kind, 1);
	assert_int_equal(record.copy.source_kind, 2);
	assert_int_equal(record.copy.target_kind, 3);
	assert_int_equal(record.copy.flags, 1);
	assert_int_equal(record.start, 5);
	assert_int_equal(record.end, 6);
	assert_int_equal(record.device, 1);
	assert_int_equal(record.context, 2);
	assert_int_equal(record.stream, 3);
	assert_int_equal(record.launch, 4);
	assert_int_equal(record.node, 7);
	assert_int_equal(record.graph, 8);
	assert_int_equal(record.channel, 9);
	assert_int_equal(record.channel_type, 2);
	/* Before 12.8 another record is where the count would be. */
	assert_true(profile_convert((const void *)&copy, 24, &record, &name));
	assert_int_equal(record.copy.count, 0);

	assert_true(profile_convert((const void *)&peers, 28, &record, &name));
	assert_int_equal(record.kind, PROFILE_PEER_COPY);
	assert_int_equal(record.copy.bytes, 99);
	assert_int_equal(record.copy.kind, 10);
	assert_int_equal(record.copy.source_device, 1);
	assert_int_equal(record.copy.source_context, 2);
	assert_int_equal(record.copy.target_device, 3);
	assert_int_equal(record.copy.target_context, 4);
	assert_int_equal(record.launch, 5);

	assert_true(profile_convert((const void *)&fill, 28, &record, &name));
	assert_int_equal(record.kind, PROFILE_FILL);
	assert_int_equal(record.fill.bytes, 64);
	assert_int_equal(record.fill.value, 0x12345678);
	assert_int_equal(record.fill.flags, 1);
	assert_int_equal(record.fill.memory_kind, 3);
	assert_int_equal(record.start, 10);
	assert_int_equal(record.end, 11);
	assert_int_equal(record.launch, 12);
	assert_int_equal(record.channel, 2);
	assert_int_equal(record.channel_type, 1);

	assert_true(profile_convert((const void *)&graph, 18, &record, &name));
	assert_int_equal(record.kind, PROFILE_GRAPH);
	assert_int_equal(record.launch, 1);
	assert_int_equal(record.end, 3);
	assert_int_equal(record.device, 4);
	assert_int_equal(record.graph, 5);
	assert_int_equal(record.context, 6);
	assert_int_equal(record.stream, 7);

	assert_false(profile_convert((const void *)&call, 18, &record, &name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_says_all),
		cmocka_unit_test(copies_and_fills_say_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
