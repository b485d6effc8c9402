/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that lies as one with a stripped CUDA runtime: functions of the sizes that it has in
 * one release (BEFORE, INIT and BEHIND it), whose code is of no use, and functions of its API that
 * name themselves as they do there. BY_PLACE: by the place of the name's address.
 */
	.section .note.GNU-stack, "", @progbits

	.macro function size
	.text
	.p2align 4
	.cfi_startproc
	.skip \size, 0x90
	.cfi_endproc
	.endm

	.macro named name, size
	.section .rodata
.Lname_\name:
	.string "\name"
	.section .data.rel.ro, "aw"
	.p2align 3
.Lplace_\name:
	.quad .Lname_\name
	.text
	.p2align 4
	.cfi_startproc
.Lcode_\name:
#if BY_PLACE
	movq .Lplace_\name(%rip), %xmm1
#else
	leaq .Lname_\name(%rip), %r9
#endif
	.skip \size - (. - .Lcode_\name), 0x90
	.cfi_endproc
	.endm

	function 24
	.irp size, BEFORE
	function \size
	.endr
	named __cudaInitModule, INIT
	.irp size, BEHIND
	function \size
	.endr
	function 200
	named cudaMalloc, 0x1bb
	named cudaGetDeviceProperties_v2, 0x41

	/* A name may be long. */
	.section .rodata
	.skip 128
