/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of FILE as NAME, with a NUL behind them (PTX is text) and their number as NAME_size. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
	.section .rodata
	.balign 16
	.globl NAME
NAME:
	.incbin FILE
0:	.byte 0
	.balign 8
	.globl JOIN(NAME, _size)
JOIN(NAME, _size):
	.quad 0b - NAME
	.section .note.GNU-stack, "", @progbits
