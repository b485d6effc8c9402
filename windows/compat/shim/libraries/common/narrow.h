/* SPDX-License-Identifier: Apache-2.0
 *
 * shim/libraries/common/narrow.h by the calling convention of Windows: four arguments in
 * registers, the others behind the return address and 32 bytes that are the callee's.
 */
#ifndef VCUDA_LIBRARY_NARROW_H
#define VCUDA_LIBRARY_NARROW_H

#define STUB_WIDE(name, ints)                                                                  \
	extern __typeof__(name) narrow_##name __attribute__((alias(#name)));                   \
	__asm__(".text\n"                                                                      \
		".globl " #name "_64\n"                                                        \
		".def " #name "_64; .scl 2; .type 32; .endef\n" #name "_64:\n"                 \
		"	movl $" #ints ", %r11d\n"                                              \
		"	leaq narrow_" #name "(%rip), %r10\n"                                   \
		"	jmp stub_narrow\n")

#define STUB_NARROW(too_wide)                                                                  \
	__asm__(".text\n"                                                                      \
		"stub_narrow:\n" STUB_FITS(1, "ecx", "rcx") STUB_FITS(2, "edx", "rdx")         \
			STUB_FITS(4, "r8d", "r8")                                              \
				STUB_FITS(8, "r9d", "r9") "	shrl $4, %r11d\n"                  \
							  "	jz 3f\n"                           \
							  "	movq %r10, 8(%rsp)\n"              \
							  "	leaq 40(%rsp), %rax\n"             \
							  "1:	testl $1, %r11d\n"               \
							  "	jz 2f\n"                           \
							  "	movslq (%rax), %r10\n"             \
							  "	cmpq %r10, (%rax)\n"               \
							  "	jne 4f\n"                          \
							  "2:	addq $8, %rax\n"                 \
							  "	shrl $1, %r11d\n"                  \
							  "	jnz 1b\n"                          \
							  "	movq 8(%rsp), %r10\n"              \
							  "3:	jmp *%r10\n"                     \
							  "4:	movl $" #too_wide ", %eax\n"   \
							  "	ret\n")
#define STUB_FITS(bit, half, whole)                                                            \
	"	testl $" #bit ", %r11d\n"                                                      \
	"	jz 5f\n"                                                                             \
	"	movslq %" half ", %rax\n"                                                      \
	"	cmpq %" whole ", %rax\n"                                                       \
	"	jne 4f\n"                                                                            \
	"5:\n"

#endif
