// SPDX-License-Identifier: Apache-2.0
/* Surfaces by PTX: clang 19 has no functions for them. X counts bytes. */
#pragma once

__device__ inline void surface_put(cudaSurfaceObject_t s, float value, int x, int y)
{
	asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], {%3};" ::"l"(s), "r"(x), "r"(y),
		"r"(__float_as_int(value))
		: "memory");
}

__device__ inline float surface_get(cudaSurfaceObject_t s, int x, int y)
{
	int value;

	asm volatile("suld.b.2d.b32.trap {%0}, [%1, {%2, %3}];"
		: "=r"(value)
		: "l"(s), "r"(x), "r"(y)
		: "memory");
	return __int_as_float(value);
}
