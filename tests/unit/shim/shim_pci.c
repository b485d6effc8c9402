/* SPDX-License-Identifier: Apache-2.0
 *
 * PCI places of several agents' GPUs: no two alike, and one agent's as they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>

#include "shim/driver/device/pci.h"

#define MOST 16

static struct open_device all[MOST];

static void has(unsigned i, const char *text)
{
	const unsigned which = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;

	memset(&all[i], 0, sizeof(all[i]));
	snprintf(all[i].pci_bus_id, sizeof(all[i].pci_bus_id), "%s", text);
	all[i].attribute_known[which / 8] |= (uint8_t)(1u << which % 8);
	sscanf(text, "%x", (unsigned *)&all[i].attributes[which]);
}

static void shows(unsigned i, const char *text, int domain)
{
	assert_string_equal(all[i].pci_bus_id, text);
	assert_int_equal(all[i].attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID], domain);
}

static void test_apart(void **state)
{
	(void)state;
	has(0, "0000:3B:00.0");
	has(1, "0000:5E:00.0");
	assert_int_equal(pci_part(all, 0, 2), 0);
	has(2, "0000:5E:00.0");
	has(3, "0000:af:00.1");
	assert_int_equal(pci_part(all, 2, 4), 0x100);
	has(4, "0000:3B:00.0");
	assert_int_equal(pci_part(all, 4, 5), 0x100);
	has(5, "0000:3B:00.0");
	assert_int_equal(pci_part(all, 5, 6), 0x200);
	has(6, "0001:3B:00.0"); /* another one already */
	assert_int_equal(pci_part(all, 6, 7), 0);
	shows(0, "0000:3B:00.0", 0);
	shows(1, "0000:5E:00.0", 0);
	shows(2, "0100:5E:00.0", 0x100);
	shows(3, "0100:AF:00.1", 0x100);
	shows(4, "0100:3B:00.0", 0x100);
	shows(5, "0200:3B:00.0", 0x200);
	shows(6, "0001:3B:00.0", 1);
}

static void test_odd(void **state)
{
	(void)state;
	has(0, "FFFF:01:00.0");
	has(1, "FFFF:01:00.0"); /* four digits stay four */
	assert_int_equal(pci_part(all, 1, 2), 0x100);
	shows(1, "00FF:01:00.0", 0xff);
	has(2, "10000:01:00.0"); /* and what is before them stays */
	has(3, "10000:01:00.0");
	assert_int_equal(pci_part(all, 3, 4), 0x100);
	shows(3, "10100:01:00.0", 0x10100);
	has(4, "nowhere");
	has(5, "nowhere");
	assert_int_equal(pci_part(all, 5, 6), 0);
	shows(5, "nowhere", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
