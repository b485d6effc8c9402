/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER: what NVIDIA's driver (13.0) answered on a machine
 * with two H200, value by value.  X: cuInit gives INVALID_DEVICE; "": NO_DEVICE.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "shim/driver/device/visible.h"

#define A "GPU-77ec18ca-40cf-9ca7-219a-9f86c7d4a21e"
#define B "GPU-f292f7e2-64b8-7365-2a79-659149f0e4be"

static struct open_device all[] = {
	{.uuid = {0x77, 0xec, 0x18, 0xca, 0x40, 0xcf, 0x9c, 0xa7, 0x21, 0x9a, 0x9f, 0x86, 0xc7,
		 0xd4, 0xa2, 0x1e},
		.pci_bus_id = "0000:00:06.0"},
	{.uuid = {0xf2, 0x92, 0xf7, 0xe2, 0x64, 0xb8, 0x73, 0x65, 0x2a, 0x79, 0x65, 0x91, 0x49,
		 0xf0, 0xe4, 0xbe},
		.pci_bus_id = "0000:00:07.0"},
};

static const struct {
	const char *list, *want;
} seen[] = {
	/* clang-format off */
	{NULL, "01"}, {"", ""}, {" ", ""}, {"0", "0"}, {"1", "1"}, {"1,0", "10"}, {"-1", ""},
	{"0,-1,1", "0"}, {"2", ""}, {"0,2,1", "0"}, {"2,0", ""}, {"0,0", "X"}, {"1,0,1", "X"},
	{"0,1,1", "X"}, {"1,1,0", "X"}, {"0, 1", "01"}, {" 1 , 0 ", "10"}, {"0 1", "0"},
	{"1gpu,0x", "10"}, {"01", "1"}, {"0x1", "0"}, {"+1", "1"}, {",0", ""}, {"0,", "0"},
	{"0,,1", "0"}, {"none", ""}, {"all", ""}, {"0;1", "0"}, {"a,0", ""}, {"1,a,0", "1"},
	{"4294967297", "1"}, {"1.5", "1"}, {"\t1", "1"}, {",", ""}, {"-0", "0"}, {"0,-0", "X"},
	{"1,-2", "1"},
	{A, "0"}, {B, "1"}, {B "," A, "10"}, {A "," A, "X"}, {B "," B "," A, "X"},
	{"GPU-f292", "1"}, {"GPU-f292,GPU-77ec", "10"}, {"GPU-", ""}, {"GPU", ""}, {"G", ""},
	{"GPU-zzzz", ""}, {B ",GPU-zzzz," A, "1"}, {"GPU-zzzz," A, ""}, {A ",1", "0"},
	{B ",0", "1"}, {"0," B, "0"}, {"1," A, "1"},
	{"GPU-F292F7E2-64B8-7365-2A79-659149F0E4BE", "1"},
	{"GPUf292f7e264b873652a79659149f0e4be", ""},
	{"f292f7e2-64b8-7365-2a79-659149f0e4be", ""}, {B "0", "1"}, {" " B, ""}, {B " ", "1"},
	{A ", " B, "0"}, {A " ," B, "01"}, {B ",", "1"}, {"MIG-" B, ""}, {"GPU-f", "1"},
	{"GPU-f292," B, "X"}, {"GPU-f292,GPU-f292f", "X"}, {A ",GPU-f292", "01"},
	{B ",GPU-," A, "1"}, {"gpu-f292f7e2-64b8-7365-2a79-659149f0e4be", ""}, {B ";" A, "1"},
	{B ",," A, "1"},
	/* clang-format on */
};

static const char *choose(const char *order, const char *list)
{
	static char text[OPEN_DEVICES_MOST + 1];
	int chosen[OPEN_DEVICES_MOST];
	int n = visible_choose(order, list, all, 2, chosen);

	if (n < 0)
		return "X";
	for (int i = 0; i < n; i++)
		text[i] = (char)('0' + chosen[i]);
	text[n] = 0;
	return text;
}

static void test_as_the_driver_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		const char *got = choose(NULL, seen[i].list);

		if (strcmp(got, seen[i].want) != 0)
			fail_msg("'%s' gives '%s', not '%s'", seen[i].list, got, seen[i].want);
	}
}

static void test_order(void **state)
{
	const int count = 16, clock = 13; /* CU_DEVICE_ATTRIBUTE_… */

	(void)state;
	assert_string_equal(choose("FASTEST_FIRST", NULL), "01");
	assert_string_equal(choose("PCI_BUS_ID", NULL), "01");
	assert_string_equal(choose("pci_bus_id", NULL), "X");
	assert_string_equal(choose("", NULL), "X");
	/* The second is faster, and the first lies behind it. */
	for (int i = 0; i < 2; i++) {
		all[i].attribute_known[count / 8] |= 1u << count % 8;
		all[i].attribute_known[clock / 8] |= 1u << clock % 8;
		all[i].attributes[count] = 100 + i;
		all[i].attributes[clock] = 1000000;
	}
	assert_string_equal(choose(NULL, NULL), "10");
	assert_string_equal(choose("FASTEST_FIRST", "0"), "1");
	assert_string_equal(choose("PCI_BUS_ID", NULL), "01");
	assert_string_equal(choose("PCI_BUS_ID", "1"), "1");
	assert_string_equal(choose(NULL, B), "1");
	strcpy(all[1].pci_bus_id, "0000:00:05.0");
	assert_string_equal(choose("PCI_BUS_ID", NULL), "10");
}

static void test_parts_of_a_gpu(void **state)
{
	(void)state;
	strcpy(all[1].name, "NVIDIA H200 MIG 1g.18gb");
	assert_string_equal(choose(NULL, "MIG-f292f7e2-64b8-7365-2a79-659149f0e4be"), "1");
	assert_string_equal(choose(NULL, "MIG-f292," A), "10");
	assert_string_equal(choose(NULL, A ",MIG-f2"), "01");
	assert_string_equal(choose(NULL, "MIG-77ec"), ""); /* a whole one */
	assert_string_equal(choose(NULL, B), "");
	assert_string_equal(choose(NULL, "1"), "1");
	strcpy(all[1].name, "NVIDIA H200");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_driver_does),
		cmocka_unit_test(test_parts_of_a_gpu),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
