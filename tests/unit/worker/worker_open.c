/* SPDX-License-Identifier: Apache-2.0
 *
 * What of its lease a session is told that there is, where others use the GPU's memory too:
 * what the worker saw when it heard that the session was coming, or what it sees at the open.
 */
#include "protocol/generated/cuda_wire.h"
#include "tests/unit/worker/worker_peer.h"

#include <sys/stat.h>

#include "protocol/wire/open.h"

#define MIB (1ull << 20)
#define TRIES 50

static char others[] = "/tmp/others-XXXXXX"; /* its size is what others use */
static unsigned pause_us;

static void use(uint64_t mib)
{
	assert_int_equal(truncate(others, (off_t)(mib * MIB)), 0);
}

static int setup(void **state)
{
	char fault[64];
	int fd = mkstemp(others);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(fault, sizeof(fault), "others=%s", others);
	setenv("VCUDA_SOFTGPU_FAULT", fault, 1);
	setenv("VCUDA_SOFTGPU_MEMORY", "1024M", 1);
	peer_lease = 1024 * MIB;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(others);
}

static void announce(const struct peer *p)
{
	struct handoff coming = {
		.version = HANDOFF_VERSION, .what = HANDOFF_COMING, .device_count = 1};

	assert_int_equal(send(p->handoff, &coming, sizeof(coming), 0), sizeof(coming));
	usleep(pause_us);
	use(700);
}

static uint64_t opened_lease(void)
{
	const uint64_t plain = sizeof(struct open_info) + sizeof(struct open_device);
	struct wire_vcudaOpen body = {.version = OPEN_VERSION, .capacity = plain};
	struct open_device device;
	struct frame_header h;
	struct peer p;
	bool lost;

	use(300);
	peer_start(&p);
	h = call_header(&p, OP_vcudaOpen, sizeof(body));
	peer_send(&p, &h, &body);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	memcpy(&device, peer_body + h.body + sizeof(struct open_info), sizeof(device));
	peer_stop(&p);
	return device.lease / MIB;
}

static void without_word_the_open_looks(void **state)
{
	(void)state;
	peer_before_session = NULL;
	assert_in_range(opened_lease(), 600, 724);
}

/* Where the machine lets the worker wait, it has to look again: not each time. */
static void what_was_seen_is_told(void **state)
{
	int tries = 0;

	(void)state;
	peer_before_session = announce;
	pause_us = 3000;
	while (opened_lease() < 600)
		assert_in_range(++tries, 1, TRIES);
}

static void what_is_old_is_not_believed(void **state)
{
	(void)state;
	peer_before_session = announce;
	pause_us = 100000;
	assert_in_range(opened_lease(), 200, 324);
}

/* Numbers of GPUs that are none. */
static void announce_nonsense(const struct peer *p)
{
	struct handoff coming = {
		.version = HANDOFF_VERSION, .what = HANDOFF_COMING, .device_count = UINT32_MAX};

	memset(coming.gpus, 0xff, sizeof(coming.gpus));
	assert_int_equal(send(p->handoff, &coming, sizeof(coming), 0), sizeof(coming));
}

static void gpus_that_are_not_there(void **state)
{
	(void)state;
	peer_before_session = announce_nonsense;
	assert_in_range(opened_lease(), 600, 724);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_word_the_open_looks),
		cmocka_unit_test(what_was_seen_is_told),
		cmocka_unit_test(what_is_old_is_not_believed),
		cmocka_unit_test(gpus_that_are_not_there),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
