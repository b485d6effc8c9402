/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose arguments are 64-bit forms of another one's, in assembly: by the System V
 * calling convention (windows/compat/ has that of Windows).
 */
#ifndef VCUDA_LIBRARY_NARROW_H
#define VCUDA_LIBRARY_NARROW_H

/* NAME_64, which takes int64_t where NAME takes int: arguments that fit go to NAME as they are.
 * Bit n of INTS says that argument n is such a one. */
#define STUB_WIDE(name, ints)                                                                  \
	extern __typeof__(name) narrow_##name                                                  \
		__attribute__((alias(#name), visibility("hidden")));                           \
	__asm__(".text\n"                                                                      \
		".globl " #name "_64\n"                                                        \
		".type " #name "_64, @function\n" #name "_64:\n"                               \
		"	movl $" #ints ", %r11d\n"                                              \
		"	leaq narrow_" #name "(%rip), %r10\n"                                   \
		"	jmp stub_narrow\n"                                                           \
		".size " #name "_64, . - " #name "_64\n")

/* Once in a file with STUB_WIDE. %r10: the function; %r11: which arguments; TOO_WIDE: the
 * status for one that does not fit. The first six arguments are in registers, the others behind
 * the return address; an int is the low half of its place. Only %rax, %r10, %r11 and the red
 * zone change. */
#define STUB_NARROW(too_wide)                                                                  \
	__asm__(".text\n"                                                                      \
		".type stub_narrow, @function\n"                                               \
		"stub_narrow:\n" STUB_FITS(1, "edi", "rdi") STUB_FITS(2, "esi", "rsi")         \
			STUB_FITS(4, "edx", "rdx") STUB_FITS(8, "ecx", "rcx")                  \
				STUB_FITS(16, "r8d", "r8") STUB_FITS(32, "r9d",                \
					"r9") "	shrl $6, %r11d\n"                              \
					      "	jz 3f\n"                                       \
					      "	movq %r10, -8(%rsp)\n"                         \
					      "	leaq 8(%rsp), %rax\n"                          \
					      "1:	testl $1, %r11d\n"                           \
					      "	jz 2f\n"                                       \
					      "	movslq (%rax), %r10\n"                         \
					      "	cmpq %r10, (%rax)\n"                           \
					      "	jne 4f\n"                                      \
					      "2:	addq $8, %rax\n"                             \
					      "	shrl $1, %r11d\n"                              \
					      "	jnz 1b\n"                                      \
					      "	movq -8(%rsp), %r10\n"                         \
					      "3:	jmp *%r10\n"                                 \
					      "4:	movl $" #too_wide ", %eax\n"           \
					      "	ret\n"                                         \
					      ".size stub_narrow, . - stub_narrow\n")
#define STUB_FITS(bit, half, whole)                                                            \
	"	testl $" #bit ", %r11d\n"                                                      \
	"	jz 5f\n"                                                                             \
	"	movslq %" half ", %rax\n"                                                      \
	"	cmpq %" whole ", %rax\n"                                                       \
	"	jne 4f\n"                                                                            \
	"5:\n"

#endif
