/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: what nvmlInit finds, as nvidia-smi asks for it.
 */
#include <nvml.h>
#include <stdio.h>

int main(void)
{
	char name[NVML_DEVICE_NAME_BUFFER_SIZE], uuid[NVML_DEVICE_UUID_BUFFER_SIZE];
	nvmlDevice_t device;
	nvmlMemory_t memory;
	unsigned count = 0;
	nvmlReturn_t status = nvmlInit();

	printf("nvmlInit: %s\n", nvmlErrorString(status));
	if (status)
		return 1;
	if (nvmlDeviceGetCount(&count) || nvmlDeviceGetHandleByIndex(0, &device) ||
		nvmlDeviceGetName(device, name, sizeof(name)) ||
		nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) ||
		nvmlDeviceGetMemoryInfo(device, &memory))
		return 1;
	printf("%u device(s): %s, %s, %llu MiB\n", count, name, uuid, memory.total >> 20);
	return nvmlShutdown() != NVML_SUCCESS;
}
