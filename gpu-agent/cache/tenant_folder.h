/* SPDX-License-Identifier: Apache-2.0
 *
 * The name of a tenant's folder in a cache: what a tenant is called has signs that no file's
 * name may have.
 */
#ifndef VCUDA_GPU_AGENT_CACHE_TENANT_FOLDER_H
#define VCUDA_GPU_AGENT_CACHE_TENANT_FOLDER_H

#define TENANT_FOLDER 25 /* bytes of it, with its NUL */

const char *tenant_folder(char name[TENANT_FOLDER], const char *tenant);

#endif
