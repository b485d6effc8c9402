/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices there are, how they are found, and what never changes about one.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "shim/nvml/nvml.h"

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!deviceCount)
		return NVML_ERROR_INVALID_ARGUMENT;
	*deviceCount = nvml_count();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount)
{
	return nvmlDeviceGetCount_v2(deviceCount);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!device || index >= nvml_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = nvml_handle(index);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	nvmlReturn_t status = nvml_enter();
	char own[NVML_UUID_TEXT];

	if (status)
		return status;
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < nvml_count(); i++) {
		nvml_uuid(vcuda_nvml_device(i), own);
		/* NVIDIA's takes it without "GPU-" too, as CUDA has it (cuda.core asks so). */
		if (!strcasecmp(own, uuid) || !strcasecmp(own + sizeof("GPU-") - 1, uuid)) {
			*device = nvml_handle(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
	nvmlReturn_t status = nvml_enter();
	char text[sizeof(uuid->value.str) + 1];

	if (status)
		return status;
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (uuid->version != nvmlUUID_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type == NVML_UUID_TYPE_ASCII) {
		snprintf(text, sizeof(text), "%.*s", (int)sizeof(uuid->value.str),
			uuid->value.str);
		return nvmlDeviceGetHandleByUUID(text, device);
	}
	if (uuid->type != NVML_UUID_TYPE_BINARY)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < nvml_count(); i++)
		if (!memcmp(vcuda_nvml_device(i)->uuid, uuid->value.bytes, 16)) {
			*device = nvml_handle(i);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

struct place {
	unsigned domain, bus, device;
};

/* domain:bus:device.function, where domain and function may be left out. */
static bool parse_place(const char *text, struct place *place)
{
	unsigned function;

	if (sscanf(text, "%x:%x:%x.%x", &place->domain, &place->bus, &place->device,
		    &function) >= 3)
		return true;
	place->domain = 0;
	return sscanf(text, "%x:%x.%x", &place->bus, &place->device, &function) >= 2;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
	nvmlReturn_t status = nvml_enter();
	struct place wanted, own;

	if (status)
		return status;
	if (!pciBusId || !device || !parse_place(pciBusId, &wanted))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < nvml_count(); i++)
		if (parse_place(vcuda_nvml_device(i)->pci_bus_id, &own) &&
			own.domain == wanted.domain && own.bus == wanted.bus &&
			own.device == wanted.device) {
			*device = nvml_handle(i);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(pciBusId, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
	nvmlReturn_t status = nvml_enter();
	char own[NVML_TEXT_BYTES];

	if (status)
		return status;
	if (!serial || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < nvml_count(); i++)
		if (!nvml_text(nvml_handle(i), NVML_TEXT_SERIAL, own, sizeof(own)) &&
			!strcmp(own, serial)) {
			*device = nvml_handle(i);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int length)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	return status ? status : nvml_copy(name, length, device->name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int length)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);
	char own[NVML_UUID_TEXT];

	if (status)
		return status;
	nvml_uuid(device, own);
	return nvml_copy(uuid, length, own);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
	const struct open_device *device;
	unsigned own;
	nvmlReturn_t status = nvml_device(handle, &device, &own);

	if (status)
		return status;
	if (!index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = own;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minorNumber)
{
	return nvml_fact(handle, NVML_FACT_MINOR_NUMBER, minorNumber);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t handle, char *serial, unsigned int length)
{
	return handle ? nvml_text(handle, NVML_TEXT_SERIAL, serial, length)
		      : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t handle, char *version, unsigned int length)
{
	return handle ? nvml_text(handle, NVML_TEXT_VBIOS, version, length)
		      : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(
	nvmlDevice_t handle, char *partNumber, unsigned int length)
{
	return handle ? nvml_text(handle, NVML_TEXT_PART_NUMBER, partNumber, length)
		      : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t handle, nvmlBrandType_t *type)
{
	return nvml_fact(handle, NVML_FACT_BRAND, (unsigned *)type);
}

/* ---- where it is ---- */

/* Numbers of the chip: 0 where the agent does not know them (the software GPU has none). */
static nvmlReturn_t place_of(
	nvmlDevice_t handle, struct place *place, unsigned *chip, unsigned *board)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!parse_place(device->pci_bus_id, place))
		return NVML_ERROR_NOT_SUPPORTED;
	if (nvml_fact(handle, NVML_FACT_PCI_DEVICE_ID, chip))
		*chip = 0;
	*board = 0;
	if (*chip && nvml_fact(handle, NVML_FACT_PCI_SUBSYSTEM_ID, board))
		*board = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
	struct place place;
	unsigned chip, board;
	nvmlReturn_t status = place_of(handle, &place, &chip, &board);

	if (status)
		return status;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(pci, 0, sizeof(*pci));
	pci->domain = place.domain;
	pci->bus = place.bus;
	pci->device = place.device;
	pci->pciDeviceId = chip;
	pci->pciSubSystemId = board;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT,
		place.domain & 0xffff, place.bus & 0xff, place.device & 0xff);
	snprintf(pci->busId, sizeof(pci->busId), NVML_DEVICE_PCI_BUS_ID_FMT, place.domain,
		place.bus, place.device);
	return NVML_SUCCESS;
}

/* Callers of the older forms have a struct that is as long only up to busId. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t whole;
	nvmlReturn_t status = nvmlDeviceGetPciInfo_v3(handle, pci ? &whole : NULL);

	if (!status)
		memcpy(pci, &whole, offsetof(nvmlPciInfo_t, busId));
	return status;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
	return nvmlDeviceGetPciInfo_v2(handle, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_t *pci)
{
	enum { DISPLAY_CONTROLLER = 3, THREE_D = 2 };
	struct place place;
	unsigned chip, board;
	nvmlReturn_t status = place_of(handle, &place, &chip, &board);

	if (status)
		return status;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (pci->version != nvmlPciInfoExt_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*pci = (nvmlPciInfoExt_t){.version = nvmlPciInfoExt_v1,
		.domain = place.domain,
		.bus = place.bus,
		.device = place.device,
		.pciDeviceId = chip,
		.pciSubSystemId = board,
		.baseClass = DISPLAY_CONTROLLER,
		.subClass = THREE_D};
	snprintf(pci->busId, sizeof(pci->busId), NVML_DEVICE_PCI_BUS_ID_FMT, place.domain,
		place.bus, place.device);
	return NVML_SUCCESS;
}

/* ---- what CUDA knows ---- */

static nvmlReturn_t attribute(nvmlDevice_t handle, int which, int *value)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!value)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!(device->attribute_known[which / 8] >> which % 8 & 1))
		return NVML_ERROR_NOT_SUPPORTED;
	*value = device->attributes[which];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
	nvmlReturn_t status =
		attribute(handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);

	return status ? status
		      : attribute(handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t handle, nvmlDeviceArchitecture_t *arch)
{
	static const struct {
		int from; /* 10 * major + minor */
		unsigned arch;
	} generations[] = {{30, NVML_DEVICE_ARCH_KEPLER}, {50, NVML_DEVICE_ARCH_MAXWELL},
		{60, NVML_DEVICE_ARCH_PASCAL}, {70, NVML_DEVICE_ARCH_VOLTA},
		{75, NVML_DEVICE_ARCH_TURING}, {80, NVML_DEVICE_ARCH_AMPERE},
		{89, NVML_DEVICE_ARCH_ADA}, {90, NVML_DEVICE_ARCH_HOPPER},
		{100, NVML_DEVICE_ARCH_BLACKWELL}, {130, NVML_DEVICE_ARCH_UNKNOWN}};
	int major, minor;
	nvmlReturn_t status = nvmlDeviceGetCudaComputeCapability(handle, &major, &minor);

	if (status)
		return status;
	if (!arch)
		return NVML_ERROR_INVALID_ARGUMENT;
	*arch = NVML_DEVICE_ARCH_UNKNOWN;
	for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
		if (10 * major + minor >= generations[i].from)
			*arch = generations[i].arch;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *numCores)
{
	return nvml_fact(handle, NVML_FACT_CORES, numCores);
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned int *busWidth)
{
	int width;
	nvmlReturn_t status = attribute(
		handle, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, busWidth ? &width : NULL);

	if (!status)
		*busWidth = (unsigned)width;
	return status;
}

/* No kernel reaches the program's pageable memory here, as cuDeviceGetAttribute says too. */
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t handle, nvmlDeviceAddressingMode_t *mode)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!mode)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (mode->version != nvmlDeviceAddressingMode_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	mode->value = NVML_DEVICE_ADDRESSING_MODE_NONE;
	return NVML_SUCCESS;
}
