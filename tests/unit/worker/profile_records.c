/* SPDX-License-Identifier: Apache-2.0
 *
 * What the worker keeps of the buffers that CUPTI fills: which frame caused a record, whichever
 * comes first, and that all of it is bounded.  The test is the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/worker/libraries/cupti/profile.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* --- the library -------------------------------------------------------------------------- */

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static size_t lost; /* records that it says it dropped */

static CUptiResult fake_register(
	CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed)
{
	request = requested;
	complete = completed;
	return CUPTI_SUCCESS;
}

static size_t record_bytes(CUpti_ActivityKind kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
	case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
	case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
	case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		return sizeof(CUpti_ActivityExternalCorrelation);
	default: return sizeof(CUpti_ActivityAPI);
	}
}

static CUptiResult fake_next(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	uint8_t *at = *record ? (uint8_t *)*record + record_bytes((*record)->kind) : buffer;

	if (at >= buffer + valid)
		return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	*record = (void *)at;
	return CUPTI_SUCCESS;
}

static CUptiResult fake_dropped(CUcontext context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = lost;
	lost = 0;
	return CUPTI_SUCCESS;
}

static const struct cupti_library library = {
	.cuptiActivityRegisterCallbacks = fake_register,
	.cuptiActivityGetNextRecord = fake_next,
	.cuptiActivityGetNumDroppedRecords = fake_dropped,
};

/* --- its buffers -------------------------------------------------------------------------- */

static struct {
	uint8_t *bytes;
	size_t size, used;
} buffer;

static void begin(void)
{
	size_t records = 1;

	request(&buffer.bytes, &buffer.size, &records);
	assert_non_null(buffer.bytes);
	assert_int_equal((uintptr_t)buffer.bytes % 8, 0);
	assert_int_equal(records, 0);
	buffer.used = 0;
}

static void put(const void *record)
{
	size_t n = record_bytes(((const CUpti_Activity *)record)->kind);

	assert_true(buffer.used + n <= buffer.size);
	memcpy(buffer.bytes + buffer.used, record, n);
	buffer.used += n;
}

static void end(void)
{
	complete(NULL, 0, buffer.bytes, buffer.size, buffer.used);
}

static void put_call(uint32_t launch, uint64_t seq, CUpti_ExternalCorrelationKind kind)
{
	const CUpti_ActivityExternalCorrelation call = {
		.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
		.externalKind = kind,
		.externalId = seq,
		.correlationId = launch,
	};

	put(&call);
}
#define PUT_CALL(launch, seq) put_call(launch, seq, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)

static void put_kernel(uint32_t launch, const char *name)
{
	const CUpti_ActivityKernel10 kernel = {
		.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		.correlationId = launch,
		.name = name,
		.gridX = (int32_t)launch,
	};

	put(&kernel);
}

/* --- what travels ------------------------------------------------------------------------- */

static unsigned char batch[64u << 20];

/* How many records, checked, of BYTES in `batch`. */
static unsigned batch_count(uint64_t bytes)
{
	unsigned count = 0;

	for (uint64_t at = 0; at < bytes; count++) {
		const struct profile_record *record = (void *)(batch + at);
		const char *name = (const char *)(record + 1);

		assert_true(record->bytes >= sizeof(*record) && record->bytes % 8 == 0);
		assert_true(record->bytes <= bytes - at);
		assert_true(record->name_bytes <= record->bytes - sizeof(*record));
		assert_true(record->name_bytes <= PROFILE_NAME_MAX);
		if (record->name_bytes)
			assert_int_equal(name[record->name_bytes - 1], 0);
		assert_true(record->seq);
		at += record->bytes;
	}
	return count;
}

static unsigned flush(bool all)
{
	struct profile_store *s = profile_store_get();
	uint64_t bytes = profile_store_batch(s, all);

	assert_true(bytes <= sizeof(batch));
	if (bytes)
		assert_true(profile_store_read(s, 0, bytes, batch));
	assert_false(profile_store_read(s, 0, bytes + 1, batch));
	assert_false(profile_store_read(s, bytes + 1, 0, batch));
	assert_false(profile_store_read(s, 8, UINT64_MAX - 4, batch));
	profile_store_put();
	return batch_count(bytes);
}

static uint64_t dropped(void)
{
	uint64_t n = profile_store_get()->dropped;

	profile_store_put();
	return n;
}

static int fresh(void **state)
{
	(void)state;
	profile_store_clear(profile_store_get());
	profile_store_put();
	for (uint32_t i = 0; i < PROFILE_DEVICES; i++)
		profile_buffers_device(i, i);
	assert_int_equal(profile_buffers_open(&library, 130001), CUPTI_SUCCESS);
	return 0;
}

/* --- tests -------------------------------------------------------------------------------- */

/* The order of CUPTI 13.0, and others. */
static void a_frame_is_found_before_and_behind(void **state)
{
	const CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_DRIVER, .correlationId = 1};
	const struct profile_record *record = (void *)batch;

	(void)state;
	begin();
	PUT_CALL(1, 101);
	put_kernel(1, "one");
	put(&call);
	put_kernel(2, "two"); /* its frame comes behind, in the same buffer */
	PUT_CALL(2, 102);
	put_kernel(3, NULL); /* and that of this one in another */
	end();
	assert_int_equal(flush(false), 2);
	assert_int_equal(record->seq, 101);
	assert_int_equal(record->kernel.grid[0], 1);
	assert_string_equal((const char *)(record + 1), "one");
	record = (const void *)((const char *)record + record->bytes);
	assert_int_equal(record->seq, 102);
	assert_string_equal((const char *)(record + 1), "two");

	begin();
	PUT_CALL(3, 103);
	put_kernel(1, "again"); /* a graph's launch has many */
	end();
	assert_int_equal(flush(false), 2);
	record = (void *)batch;
	assert_int_equal(record->seq + ((const struct profile_record *)((const char *)record +
									record->bytes))
					       ->seq,
		101 + 103);
	assert_int_equal(flush(true), 0);
	assert_int_equal(dropped(), 0);
}

static void what_no_frame_caused_is_nobodys(void **state)
{
	(void)state;
	begin();
	put_kernel(1, "own");
	put_kernel(2, "another profiler's");
	put_call(2, 7, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1);
	PUT_CALL(3, 0);
	put_kernel(3, "no frame has that number");
	end();
	assert_int_equal(flush(false), 0);
	assert_int_equal(flush(true), 0);
	/* It was not kept: a frame that would have it comes too late. */
	begin();
	PUT_CALL(1, 5);
	end();
	assert_int_equal(flush(false), 0);
	assert_int_equal(dropped(), 0);
}

static void devices_are_the_sessions(void **state)
{
	const CUpti_ActivityMemcpyPtoP4 peers = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		.deviceId = 5,
		.srcDeviceId = 5,
		.dstDeviceId = 3,
		.correlationId = 1};
	const struct profile_record *record = (void *)batch;

	(void)state;
	profile_buffers_device(5, 0);
	profile_buffers_device(3, 1);
	begin();
	PUT_CALL(1, 1);
	put(&peers);
	end();
	assert_int_equal(flush(false), 1);
	assert_int_equal(record->device, 0);
	assert_int_equal(record->copy.source_device, 0);
	assert_int_equal(record->copy.target_device, 1);
}

static void what_cupti_dropped_is_counted(void **state)
{
	(void)state;
	lost = 12;
	begin();
	end();
	lost = 30;
	begin();
	end();
	assert_int_equal(dropped(), 42);
	assert_int_equal(flush(true), 0);
	assert_int_equal(dropped(), 42);
}

/* A profile that nobody reads, and one that CUPTI does not give its buffers back of. */
static void memory_is_bounded(void **state)
{
	uint8_t *taken[100], *one;
	size_t size, records, given = 0;
	struct profile_store *s;

	(void)state;
	for (size_t i = 0; i < COUNT(taken); i++) {
		request(&one, &size, &records);
		assert_true(one ? size > 0 : size == 0);
		if (one)
			taken[given++] = one;
	}
	assert_true(given > 8 && given < COUNT(taken));
	while (given)
		complete(NULL, 0, taken[--given], 1, 0);
	begin();
	end();

	profile_store_get()->most = 1u << 20;
	profile_store_put();
	for (uint32_t i = 0; i < 100; i++) {
		begin();
		for (uint32_t k = 0; k < 1000; k++) {
			PUT_CALL(1000 * i + k, 1 + k);
			put_kernel(1000 * i + k, "name");
		}
		end();
	}
	s = profile_store_get();
	assert_true(s->complete.bytes <= 1u << 20 && s->complete.bytes > (1u << 20) - 4096);
	assert_int_equal(s->dropped,
		100 * 1000 - s->complete.bytes / (sizeof(struct profile_record) + 8));
	profile_store_put();
	assert_int_equal(flush(false), 100 * 1000 - dropped());

	for (uint32_t i = 0; i < 100; i++) { /* nobody's */
		begin();
		for (uint32_t k = 0; k < 1000; k++)
			put_kernel(1u << 31, "name");
		end();
	}
	s = profile_store_get();
	assert_true(s->waiting.bytes <= PROFILE_WAITING_MAX);
	profile_store_put();
}

static void the_newest_calls_are_known(void **state)
{
	struct profile_store *s = profile_store_get();
	const uint32_t many = 3 * PROFILE_CALLS_MAX + 77;
	struct profile_record record = {.launch = many - PROFILE_CALLS_MAX};

	(void)state;
	for (uint32_t i = 0; i < many; i++)
		profile_store_call(s, i, 1 + i);
	assert_int_equal(s->call_count, PROFILE_CALLS_MAX);
	profile_store_take(s, &record, NULL);
	record.launch = many - 1;
	profile_store_take(s, &record, NULL);
	record.launch = 5; /* long forgotten, and not mistaken for another */
	profile_store_take(s, &record, NULL);
	profile_store_put();
	assert_int_equal(flush(true), 2);
	assert_int_equal(((struct profile_record *)batch)->seq, 1 + many - PROFILE_CALLS_MAX);
	/* Over, and nothing is left: the table goes. */
	s = profile_store_get();
	profile_store_rest(s);
	assert_int_equal(s->call_count, 0);
	assert_int_equal(s->batch.bytes, 0);
	profile_store_put();
}

/* Enable(0) takes away no batch that is not read to its end. */
static void a_batch_is_read_by_pieces(void **state)
{
	static unsigned char again[sizeof(batch)];
	struct profile_store *s;
	char name[6000];
	uint64_t bytes, at = 0;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	begin();
	for (uint32_t i = 1; i < 2000; i++) {
		PUT_CALL(i, i);
		put_kernel(i, name + sizeof(name) - 1 - 3 * i);
	}
	end();
	s = profile_store_get();
	bytes = profile_store_batch(s, false);
	for (uint64_t n = 1; at < bytes; at += n, n = n * 7 % 99991) {
		if (n > bytes - at)
			n = bytes - at;
		profile_store_rest(s);
		assert_true(profile_store_read(s, at, n, again + at));
	}
	assert_true(profile_store_read(s, 0, bytes, batch));
	assert_memory_equal(batch, again, bytes);
	assert_int_equal(batch_count(bytes), 1999);
	profile_store_rest(s);
	assert_false(profile_store_read(s, 0, 1, batch));
	profile_store_put();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_frame_is_found_before_and_behind, fresh),
		cmocka_unit_test_setup(what_no_frame_caused_is_nobodys, fresh),
		cmocka_unit_test_setup(devices_are_the_sessions, fresh),
		cmocka_unit_test_setup(what_cupti_dropped_is_counted, fresh),
		cmocka_unit_test_setup(memory_is_bounded, fresh),
		cmocka_unit_test_setup(the_newest_calls_are_known, fresh),
		cmocka_unit_test_setup(a_batch_is_read_by_pieces, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
