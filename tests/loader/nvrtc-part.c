/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for NVRTC: a program has a text and machine code of different sizes.
 */
#include <stddef.h>
#include <string.h>

int nvrtcGetCUBINSize(const void *program, size_t *size);
int nvrtcGetCUBIN(const void *program, char *code);
int nvrtcGetPTXSize(const void *program, size_t *size);
int nvrtcGetPTX(const void *program, char *text);

int nvrtcGetCUBINSize(const void *program, size_t *size)
{
	*size = 9;
	return program ? 0 : 4;
}

int nvrtcGetCUBIN(const void *program, char *code)
{
	memcpy(code, "\177ELFcode", 9);
	return program ? 0 : 4;
}

int nvrtcGetPTXSize(const void *program, size_t *size)
{
	*size = 5;
	return program ? 0 : 4;
}

int nvrtcGetPTX(const void *program, char *text)
{
	memcpy(text, "text", 5);
	return program ? 0 : 4;
}
