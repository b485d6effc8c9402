/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated wire, socket and core: payloads are coded where that pays and no others, and the
 * controller notices when wire, core or payloads change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/codec/controller.h"

#define CHUNK (512u << 10)
#define BUFFER (4u << 20) /* of the socket */

/* A thread that sends, and what is below it. Time is the simulation's own. */
struct world {
	struct controller controller;
	double wire, speed; /* bytes/s */
	double guess[CODEC_KINDS], real[CODEC_KINDS];
	uint64_t now;  /* ns */
	double queued; /* bytes in the socket */
	uint64_t payload, coded;
};

static void pass(struct world *world, double ns)
{
	world->now += (uint64_t)ns;
	world->queued -= world->wire * ns / 1e9;
	if (world->queued < 0)
		world->queued = 0;
}

/* As link_send_all: what fits at once, then at a third of the buffer each time. */
static void push(struct world *world, double n)
{
	while (n > 0) {
		double room = BUFFER - world->queued, step = n < room ? n : room;

		if (room < 1) {
			controller_full(&world->controller, world->now);
			pass(world, BUFFER / 3.0 / world->wire * 1e9);
			continue;
		}
		controller_sent(&world->controller, (uint64_t)step);
		world->queued += step;
		n -= step;
		pass(world, step / 5e9 * 1e9); /* the kernel's copy */
	}
}

/* CHUNKS one after the other. How many of them were coded. */
static unsigned run(struct world *world, unsigned chunks)
{
	unsigned coded = 0;

	for (unsigned i = 0; i < chunks; i++) {
		struct codec_guess guess = {.ratio = {1}};
		enum codec_kind kind = CODEC_RAW;
		double n = CHUNK;

		if (controller_asks(&world->controller)) {
			for (unsigned k = 0; k < CODEC_KINDS; k++)
				guess.ratio[k] = (float)world->guess[k];
			kind = controller_choose(&world->controller, &guess, CHUNK);
		}
		if (kind != CODEC_RAW) {
			double ns = CHUNK / world->speed * 1e9;
			uint32_t got = (uint32_t)(CHUNK / world->real[kind]);

			if (world->real[kind] <= 1)
				got = 0;
			pass(world, ns);
			controller_coded(
				&world->controller, kind, &guess, CHUNK, got, (uint64_t)ns);
			n = got ? got : CHUNK;
			coded += got != 0;
		}
		push(world, n);
	}
	return coded;
}

static struct world world_of(double wire, double speed, double ratio)
{
	struct world world = {.wire = wire, .speed = speed, .now = 1};

	for (unsigned k = CODEC_ZSTD; k < CODEC_KINDS; k++)
		world.guess[k] = world.real[k] = ratio;
	controller_init(&world.controller, CONTROLLER_AUTO);
	return world;
}

static void test_slow_wire(void **state)
{
	struct world world = world_of(30e6, 400e6, 1.48);
	uint64_t since;

	(void)state;
	/* The first fill the socket; then what is behind them is coded. */
	assert_true(run(&world, 40) >= 20);
	since = world.now;
	assert_int_equal(run(&world, 200), 200);
	/* In 1.48 times less time than the wire would take. */
	assert_true((double)(world.now - since) < 200.0 * CHUNK / 30e6 * 1e9 / 1.4);
	assert_true(world.controller.wire > 27e6 && world.controller.wire < 33e6);
}

static void test_fast_wire(void **state)
{
	struct world world = world_of(3e9, 400e6, 1.48);

	(void)state;
	assert_int_equal(run(&world, 2000), 0);
}

/* Up to what one core codes. */
static void test_even_wire(void **state)
{
	struct world slower = world_of(330e6, 400e6, 1.48),
		     faster = world_of(380e6, 400e6, 1.48);

	(void)state;
	assert_true(run(&slower, 4000) > 3000);
	assert_int_equal(run(&faster, 4000), 0);
}

static void test_what_does_not_shrink(void **state)
{
	struct world world = world_of(30e6, 400e6, 1.02);

	(void)state;
	assert_int_equal(run(&world, 500), 0);
	/* Samples that promise what the payloads do not keep: a few are tried. */
	for (unsigned k = CODEC_ZSTD; k < CODEC_KINDS; k++) {
		world.guess[k] = 1.5;
		world.real[k] = 1;
	}
	run(&world, 500);
	assert_true(world.controller.trust[CODEC_ZSTD] < 1);
}

static void test_core_that_slows_down(void **state)
{
	struct world world = world_of(100e6, 400e6, 2);
	unsigned coded;

	(void)state;
	assert_true(run(&world, 300) > 250);
	world.speed = 60e6; /* others use it: coding now costs more than the wire */
	coded = run(&world, 300);
	assert_true(coded < 100);
	world.speed = 400e6;
	run(&world, 100); /* it tries again now and then */
	assert_true(run(&world, 300) > 250);
}

static void test_wire_that_changes(void **state)
{
	struct world world = world_of(50e6, 300e6, 2);

	(void)state;
	assert_true(run(&world, 300) > 250);
	world.wire = 5e9; /* coding would hold it up: the socket is never full any more */
	run(&world, 400);
	assert_int_equal(run(&world, 300), 0);
	world.wire = 50e6;
	run(&world, 100);
	assert_int_equal(run(&world, 300), 300);
}

/* A wire that waits for us says nothing about its rate. */
static void test_pauses(void **state)
{
	struct world world = world_of(100e6, 50e6, 4);

	(void)state;
	run(&world, 100);
	for (int i = 0; i < 200; i++) {
		pass(&world, 1e9);
		controller_pause(&world.controller);
		run(&world, 12);
	}
	print_message("wire %g\n", world.controller.wire);
	assert_true(world.controller.wire > 80e6 && world.controller.wire < 120e6);
}

static void test_modes(void **state)
{
	struct world world = world_of(30e6, 400e6, 1.48);

	(void)state;
	controller_init(&world.controller, CONTROLLER_OFF);
	assert_int_equal(run(&world, 100), 0);
	assert_false(controller_asks(&world.controller));
	world = world_of(9e9, 400e6, 1.48);
	controller_init(&world.controller, CONTROLLER_ALWAYS);
	assert_int_equal(run(&world, 100), 100);
	world = world_of(9e9, 400e6, 1.01);
	controller_init(&world.controller, CONTROLLER_ALWAYS);
	assert_int_equal(run(&world, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_wire),
		cmocka_unit_test(test_fast_wire),
		cmocka_unit_test(test_even_wire),
		cmocka_unit_test(test_what_does_not_shrink),
		cmocka_unit_test(test_core_that_slows_down),
		cmocka_unit_test(test_wire_that_changes),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
