/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/cache/tenant_folder.h"

#include <openssl/sha.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *tenant_folder(char name[TENANT_FOLDER], const char *tenant)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)tenant, strlen(tenant), digest);
	for (int i = 0; i < TENANT_FOLDER / 2; i++)
		snprintf(name + (ptrdiff_t)2 * i, 3, "%02x", digest[i]);
	return name;
}
