/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU runs PTX. NVRTC has the text even where it was told to compile for a real
 * architecture, so a question for the machine code becomes one for the text.
 */
#include "shim/loader/nvrtc.h"
#include "shim/loader/jump.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool nvrtc_wanted(const char *path)
{
	const char *file = strrchr(path, '/'), *how;

	file = file ? file + 1 : path;
	/* PyTorch's wheels put a hash behind the name. The other library has functions for
	 * kernels. */
	if (strncmp(file, "libnvrtc", 8) || !strncmp(file, "libnvrtc-builtins", 17))
		return false;
	how = secure_getenv("VCUDA_NVRTC");
	return how && !strcmp(how, "ptx");
}

void nvrtc_redirect(const struct dl_phdr_info *info, const struct image *image)
{
	static const char *const names[2][2] = {
		{"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}, {"nvrtcGetCUBIN", "nvrtcGetPTX"}};
	unsigned char *code[2][2] = {{NULL}};
	struct image_function function;

	for (size_t at = 0; image_next_function(image, &at, &function);)
		for (size_t i = 0; i < 4; i++)
			if (!strcmp(function.name, names[i / 2][i % 2]) &&
				function.size >= JUMP_BYTES)
				code[i / 2][i % 2] =
					(unsigned char *)info->dlpi_addr + function.value;
	if (!code[0][0] || !code[0][1] || !code[1][0] || !code[1][1])
		return;
	for (size_t i = 0; i < 2; i++)
		jump_put(code[i][0], code[i][1]);
}
