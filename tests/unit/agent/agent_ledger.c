/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger of device memory: sums never pass the device, everything comes back, and what does
 * not add up is counted and not believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/front/ledger/ledger.h"

#define MIB (1ull << 20)

static void make(struct ledger *l, uint32_t count, uint64_t total, uint64_t reserve)
{
	struct handoff_device devices[HANDOFF_DEVICES] = {0};

	memset(l, 0, sizeof(*l));
	for (uint32_t d = 0; d < count; d++) {
		devices[d].total_memory = total;
		devices[d].uuid[0] = (uint8_t)(d + 1);
	}
	ledger_devices(l, devices, count, reserve);
	assert_true(ledger_same(l, devices, count));
	devices[0].uuid[0] = 99;
	assert_false(ledger_same(l, devices, count));
}

static void sum_stays_within_the_device(void **state)
{
	struct ledger l;
	struct ledger_account a, b;
	uint64_t contexts[HANDOFF_DEVICES] = {1000 * MIB, 0};

	(void)state;
	make(&l, 2, 65536 * MIB, 536 * MIB);
	ledger_context_add(&l, contexts);
	assert_int_equal(ledger_free(&l, 0), 64000 * MIB);
	assert_int_equal(ledger_free(&l, 1), 65000 * MIB);
	assert_int_equal(ledger_free(&l, 2), 0);

	ledger_open(&l, &a, ~0u, NULL, 256 * MIB);
	ledger_open(&l, &b, ~0u, NULL, 256 * MIB);
	assert_int_equal(a.lease[0], 256 * MIB);
	assert_int_equal(ledger_free(&l, 0), 63488 * MIB);

	/* A small wish doubles, a large one is met, one that cannot be met changes nothing. */
	assert_int_equal(ledger_grow(&l, &a, 0, 1), 512 * MIB);
	assert_int_equal(ledger_grow(&l, &b, 0, 63233 * MIB), 256 * MIB);
	assert_int_equal(ledger_grow(&l, &b, 0, 63232 * MIB), 63488 * MIB);
	assert_int_equal(ledger_free(&l, 0), 0);
	assert_int_equal(ledger_grow(&l, &a, 0, UINT64_MAX), 512 * MIB);
	assert_int_equal(ledger_grow(&l, &a, 2, 1), 0);

	ledger_close(&l, &a);
	ledger_close(&l, &b);
	ledger_context_remove(&l, contexts);
	assert_int_equal(ledger_free(&l, 0), 65000 * MIB);
	assert_int_equal(l.devices[0].leased, 0);
	assert_int_equal(l.bugs, 0);
}

static void limit_holds_for_each_account(void **state)
{
	struct ledger l;
	struct ledger_account a;

	(void)state;
	make(&l, 1, 65536 * MIB, 0);
	l.limit = 300 * MIB;
	ledger_open(&l, &a, ~0u, NULL, 256 * MIB);
	assert_int_equal(ledger_grow(&l, &a, 0, 45 * MIB), 256 * MIB);
	assert_int_equal(ledger_grow(&l, &a, 0, 44 * MIB), 300 * MIB);
	assert_int_equal(ledger_grow(&l, &a, 0, 1), 300 * MIB);
}

/* Sixty-four at once on a small device: those who have not asked hold an eighth of it together,
 * the rest is for what they ask, and nothing is leased twice. */
static void many_accounts_share_a_small_device(void **state)
{
	struct ledger l;
	struct ledger_account accounts[64];
	uint64_t sum = 0;

	(void)state;
	make(&l, 1, 4096 * MIB, 0);
	for (int i = 0; i < 64; i++)
		ledger_open(&l, &accounts[i], ~0u, NULL, 256 * MIB);
	assert_int_equal(accounts[0].lease[0], 64 * MIB);
	assert_int_equal(accounts[63].lease[0], 0);
	assert_true(ledger_free(&l, 0) >= 4096 / 8 * 7 * MIB);
	for (int i = 0; i < 64; i++) {
		uint64_t before = accounts[i].lease[0];

		assert_true(ledger_grow(&l, &accounts[i], 0, 8 * MIB) >= before + 8 * MIB);
		sum += accounts[i].lease[0];
	}
	assert_int_equal(sum + ledger_free(&l, 0), 4096 * MIB);
	for (int i = 0; i < 64; i++)
		ledger_close(&l, &accounts[i]);
	assert_int_equal(ledger_free(&l, 0), 4096 * MIB);
}

static void memory_of_others_is_not_given(void **state)
{
	struct ledger l;
	uint64_t contexts[HANDOFF_DEVICES] = {100 * MIB};

	(void)state;
	make(&l, 1, 1024 * MIB, 0);
	ledger_context_add(&l, contexts);
	ledger_foreign(&l, 0, 300 * MIB);
	assert_int_equal(l.devices[0].foreign, 200 * MIB);
	assert_int_equal(ledger_free(&l, 0), 724 * MIB);
	/* More is in use than there is: nothing is left, and nothing wraps around. */
	ledger_foreign(&l, 0, UINT64_MAX);
	assert_int_equal(ledger_free(&l, 0), 0);
}

static void what_does_not_add_up_is_a_bug(void **state)
{
	struct ledger l;
	struct ledger_account a;
	uint64_t contexts[HANDOFF_DEVICES] = {5};

	(void)state;
	make(&l, 1, 65536 * MIB, 0);
	ledger_open(&l, &a, ~0u, NULL, 256 * MIB);
	a.lease[0] += 1;
	ledger_close(&l, &a);
	assert_int_equal(l.bugs, 1);
	assert_true(a.quarantined);
	assert_int_equal(l.devices[0].leased, 0);
	assert_int_equal(ledger_grow(&l, &a, 0, 1), 0);
	ledger_context_remove(&l, contexts);
	assert_int_equal(l.bugs, 2);
	assert_int_equal(l.devices[0].contexts, 0);
}

/* Two hundred that ask for nothing leave seven eighths; where little is free the next one gets
 * nothing before it asks; what one asked for is no longer idle. */
static void idle_accounts_starve_nobody(void **state)
{
	static struct ledger_account idle[200];
	struct ledger_account busy, late;
	struct ledger l;

	(void)state;
	make(&l, 1, 81920 * MIB, 0);
	for (int i = 0; i < 200; i++)
		ledger_open(&l, &idle[i], ~0u, NULL, 256 * MIB);
	assert_int_equal(idle[0].lease[0], 256 * MIB);
	assert_true(l.devices[0].idle <= 10240 * MIB);
	assert_int_equal(l.devices[0].leased, l.devices[0].idle);
	ledger_open(&l, &busy, ~0u, NULL, 256 * MIB);
	assert_int_equal(ledger_grow(&l, &busy, 0, 71000 * MIB), 71000 * MIB);
	for (int i = 0; i < 200; i++)
		ledger_close(&l, &idle[i]);
	assert_int_equal(l.devices[0].idle, 0);
	assert_int_equal(ledger_free(&l, 0), 10920 * MIB);
	ledger_open(&l, &late, ~0u, NULL, 256 * MIB);
	assert_true(late.lease[0] > 0);
	assert_int_equal(ledger_grow(&l, &busy, 0, 1000 * MIB), 72000 * MIB);
	ledger_close(&l, &late);
	ledger_open(&l, &late, ~0u, NULL, 256 * MIB); /* an eighth is free, no more */
	assert_int_equal(late.lease[0], 0);
	assert_true(ledger_grow(&l, &late, 0, 16 * MIB) >= 16 * MIB);
	ledger_close(&l, &late);
	ledger_close(&l, &busy);
	assert_int_equal(l.bugs, 0);
}

/* A pod's budget inside its tenant's: both must have it. */
static void budget_within_a_budget(void **state)
{
	struct ledger_budget tenant = {.limit = 100 * MIB};
	struct ledger_budget pod = {.limit = 80 * MIB, .parent = &tenant};
	struct ledger_account a, b;
	struct ledger l;

	(void)state;
	make(&l, 1, 4096 * MIB, 0);
	ledger_open(&l, &a, ~0u, &pod, 256 * MIB);
	ledger_open(&l, &b, ~0u, &tenant, 256 * MIB);
	assert_int_equal(a.lease[0] + b.lease[0], 0);
	assert_int_equal(ledger_grow(&l, &a, 0, 81 * MIB), 0);
	assert_int_equal(ledger_grow(&l, &b, 0, 40 * MIB), 40 * MIB);
	assert_int_equal(ledger_grow(&l, &a, 0, 61 * MIB), 0);
	assert_int_equal(ledger_grow(&l, &a, 0, 60 * MIB), 60 * MIB);
	assert_int_equal(tenant.lease[0], 100 * MIB);
	ledger_close(&l, &a);
	assert_int_equal(tenant.lease[0], 40 * MIB);
	assert_int_equal(pod.lease[0], 0);
	ledger_close(&l, &b);
	assert_int_equal(tenant.lease[0], 0);
	assert_int_equal(l.bugs, 0);
}

/* Two accounts of one budget, a third without, one that may not have of device 1. */
static void accounts_of_one_budget_share_it(void **state)
{
	struct ledger l = {0};
	struct ledger_budget budget = {.limit = 100 * MIB};
	struct ledger_account a, b, c;

	(void)state;
	make(&l, 2, 4096 * MIB, 0);
	ledger_open(&l, &a, ~0u, &budget, 256 * MIB);
	ledger_open(&l, &b, 1u, &budget, 256 * MIB);
	ledger_open(&l, &c, ~0u, NULL, 0);
	assert_int_equal(a.lease[0], 0); /* nothing unasked */
	assert_int_equal(ledger_grow(&l, &a, 0, 60 * MIB), 60 * MIB);
	assert_int_equal(ledger_grow(&l, &a, 0, 1), 60 * MIB + 1); /* no doubling */
	assert_int_equal(ledger_grow(&l, &b, 0, 40 * MIB), 0);
	assert_int_equal(ledger_grow(&l, &b, 0, 40 * MIB - 1), 40 * MIB - 1);
	assert_int_equal(ledger_grow(&l, &a, 0, 1), 60 * MIB + 1);
	assert_int_equal(ledger_grow(&l, &b, 1, 1), 0);
	assert_int_equal(ledger_grow(&l, &a, 1, 100 * MIB), 100 * MIB); /* of each device */
	assert_true(ledger_grow(&l, &c, 0, 200 * MIB) >= 200 * MIB);
	ledger_close(&l, &a);
	assert_int_equal(budget.lease[0], 40 * MIB - 1);
	assert_int_equal(ledger_grow(&l, &b, 0, 60 * MIB + 1), 100 * MIB);
	ledger_close(&l, &b);
	ledger_close(&l, &c);
	assert_int_equal(budget.lease[0] + budget.lease[1], 0);
	assert_int_equal(ledger_free(&l, 0), 4096 * MIB);
	assert_int_equal(l.bugs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounts_of_one_budget_share_it),
		cmocka_unit_test(idle_accounts_starve_nobody),
		cmocka_unit_test(budget_within_a_budget),
		cmocka_unit_test(sum_stays_within_the_device),
		cmocka_unit_test(limit_holds_for_each_account),
		cmocka_unit_test(many_accounts_share_a_small_device),
		cmocka_unit_test(memory_of_others_is_not_given),
		cmocka_unit_test(what_does_not_add_up_is_a_bug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
