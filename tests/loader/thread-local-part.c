/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with thread-local memory.
 */
int part_count(void);

static __thread int count;

int part_count(void)
{
	return ++count;
}
