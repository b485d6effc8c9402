/* SPDX-License-Identifier: Apache-2.0
 *
 * A module that Cython made offers its C functions to other modules as capsules, objects that
 * hold an address, under the functions' names in a dict (__pyx_capi__).  cuda.bindings has one
 * that wraps each function of a runtime without symbols: _cudaMalloc(void **, size_t) calls
 * cudaMalloc.  As the module puts such a capsule into its dict, we exchange the address for
 * that of our cudaMalloc, so that NVIDIA's runtime is never called.  For that the stubs by
 * which the module calls Python's PyDict_SetItem and PyDict_SetItemString become jumps to
 * functions of ours; the rest of the process keeps Python's.
 */
#include "shim/loader/capsules.h"
#include "shim/loader/jump.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A jump (jump.h) fits into a stub. */
#define STUB_BYTES 16
/* cuda.bindings has two, one for each default stream; a process may have it in two versions. */
#define MODULES_MOST 16
#define NAME_MOST 128
/* A larger file is not looked through: Cython's modules have some MB, and others hundreds. */
#define FILE_MOST ((size_t)32 << 20)

struct module {
	uintptr_t from, to; /* its code */
	const char *version;
	bool per_thread; /* its default stream is the thread's */
};

static struct module modules[MODULES_MOST];
static size_t module_count; /* set last: read by threads that call a module's stubs */

struct _object; /* Python's */

/* What is called of Python, which is in the process where a module of its is. */
static struct {
	int (*set_item)(struct _object *dict, struct _object *key, struct _object *value);
	int (*set_item_string)(struct _object *dict, const char *key, struct _object *value);
	struct _object *(*type)(struct _object *object); /* to be released */
	void (*release)(struct _object *object);
	const char *(*text)(struct _object *object);
	void (*clear)(void);
	int (*set_pointer)(struct _object *capsule, void *pointer);
	void *capsule_type;
} python;

static bool python_find(void)
{
	static const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"PyDict_SetItem", &python.set_item},
		{"PyDict_SetItemString", &python.set_item_string},
		{"PyObject_Type", &python.type},
		{"Py_DecRef", &python.release},
		{"PyUnicode_AsUTF8", &python.text},
		{"PyErr_Clear", &python.clear},
		{"PyCapsule_SetPointer", &python.set_pointer},
		{"PyCapsule_Type", &python.capsule_type},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *found = dlsym(RTLD_DEFAULT, wanted[i].name);

		if (!found) {
			dlerror(); /* nobody is to be told of it */
			return false;
		}
		memcpy(wanted[i].to, &found, sizeof(found));
	}
	return true;
}

/* ---- What the module does with its capsules ---- */

static bool is_capsule(struct _object *object)
{
	struct _object *type = object ? python.type(object) : NULL;
	bool is = type == python.capsule_type;

	if (type)
		python.release(type);
	return is;
}

static const struct module *module_of(const void *address)
{
	for (size_t i = 0; i < __atomic_load_n(&module_count, __ATOMIC_ACQUIRE); i++)
		if ((uintptr_t)address >= modules[i].from && (uintptr_t)address < modules[i].to)
			return &modules[i];
	return NULL;
}

/* Our function that MODULE's one of that name stands for; NULL: none. */
static void *stand_in(const struct module *module, const char *name)
{
	static const char *const forms[] = {"_ptsz", "_ptds", ""};
	void *found = NULL;

	if (!module || strncmp(name, "_cuda", 5))
		return NULL;
	for (size_t i = module->per_thread ? 0 : 2; i < 3 && !found; i++) {
		char form[NAME_MOST];

		if (snprintf(form, sizeof(form), "%s%s", name + 1, forms[i]) < NAME_MOST)
			found = dlvsym(RTLD_DEFAULT, form, module->version);
	}
	if (!found)
		dlerror();
	return found;
}

static void exchange(const void *caller, const char *name, struct _object *capsule)
{
	void *function = stand_in(module_of(caller), name);

	if (function && python.set_pointer(capsule, function))
		python.clear();
}

static int set_item_string(struct _object *dict, const char *key, struct _object *value)
{
	if (is_capsule(value))
		exchange(__builtin_return_address(0), key, value);
	return python.set_item_string(dict, key, value);
}

static int set_item(struct _object *dict, struct _object *key, struct _object *value)
{
	if (is_capsule(value)) {
		const char *name = python.text(key);

		if (name)
			exchange(__builtin_return_address(0), name, value);
		else
			python.clear(); /* a key that is no text */
	}
	return python.set_item(dict, key, value);
}

/* ---- Redirecting a module ---- */

/* The stub that jumps to where SLOT says, by jmp *SLOT(%rip), before or behind it what a linker
 * puts there: endbr64, bnd, or what binds the function at its first call. */
static unsigned char *find_stub(const struct dl_phdr_info *info, uintptr_t slot)
{
	static const unsigned char endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa},
				   jump[2] = {0xff, 0x25};
	const size_t jump_bytes = sizeof(jump) + sizeof(int32_t);

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;
		uintptr_t at = (start + STUB_BYTES - 1) & ~(uintptr_t)(STUB_BYTES - 1);

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		for (; at + STUB_BYTES <= start + part->p_filesz; at += STUB_BYTES) {
			unsigned char *code = (unsigned char *)at;
			int32_t distance;

			if (!memcmp(code, endbr64, sizeof(endbr64)))
				code += sizeof(endbr64);
			if (*code == 0xf2)
				code++;
			if (memcmp(code, jump, sizeof(jump)))
				continue;
			memcpy(&distance, code + sizeof(jump), sizeof(distance));
			if ((uintptr_t)(code + jump_bytes) + (uintptr_t)(intptr_t)distance ==
				slot)
				return (unsigned char *)at;
		}
	}
	return NULL;
}

/* Of what the object calls by stubs, the functions that put something into a dict. */
static void redirect_stubs(const struct dl_phdr_info *info)
{
	const struct loaded_tables t = loaded_tables(info);

	if (!t.symbols || !t.names || !t.stubs)
		return;
	for (size_t i = 0; i < t.stub_count; i++) {
		uint32_t name = t.symbols[ELF64_R_SYM(t.stubs[i].r_info)].st_name;
		void *target = NULL;
		unsigned char *stub;

		if (name >= t.names_size)
			continue;
		if (!strcmp(t.names + name, "PyDict_SetItem"))
			target = set_item;
		else if (!strcmp(t.names + name, "PyDict_SetItemString"))
			target = set_item_string;
		stub = target ? find_stub(info, info->dlpi_addr + t.stubs[i].r_offset) : NULL;
		if (stub)
			jump_put(stub, target);
	}
}

/* The name of the Python module in the image; NULL where there is none. */
static const char *module_name(const struct image *image)
{
	static const char init[] = "PyInit_";
	struct image_function function;

	for (size_t at = 0; image_next_function(image, &at, &function);)
		if (!strncmp(function.name, init, sizeof(init) - 1))
			return function.name + sizeof(init) - 1;
	return NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

bool capsules_worth(const struct image *image)
{
	return image->size <= FILE_MOST && module_name(image);
}

void capsules_redirect(
	const struct dl_phdr_info *info, const struct image *image, const char *version)
{
	const char *name = module_name(image);
	struct module *module = &modules[module_count];

	if (!name || module_count == MODULES_MOST || !python_find())
		return;
	/* Compiled for the other default stream, it has NVIDIA's suffix for that. */
	*module = (struct module){UINTPTR_MAX, 0, version, ends_with(name, "_ptds")};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		module->from = start < module->from ? start : module->from;
		module->to =
			start + part->p_memsz > module->to ? start + part->p_memsz : module->to;
	}
	__atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
	redirect_stubs(info);
}
