/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds-checked reading of ELF files (elf.h).  A file that does not keep to the format has
 * no symbols, and with that nothing to redirect.
 */
#include "shim/loader/elf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Symbols looked at where the hash table does not say how many are imported. */
#define IMPORTS_MOST 65536

/* [offset, + bytes) lies in the file and is aligned for what is read there. */
static bool inside(const struct image *image, uint64_t offset, uint64_t bytes, size_t align)
{
	return offset <= image->size && bytes <= image->size - offset && offset % align == 0;
}

/* The symbol table of that kind and its names, where both are in the file. */
static bool find_symbols(
	struct image *image, const Elf64_Shdr *sections, size_t count, uint32_t kind)
{
	for (size_t i = 0; i < count; i++) {
		const Elf64_Shdr *table = &sections[i], *names;

		if (table->sh_type != kind || table->sh_link >= count ||
			!inside(image, table->sh_offset, table->sh_size, 8))
			continue;
		names = &sections[table->sh_link];
		if (names->sh_type != SHT_STRTAB || !names->sh_size ||
			!inside(image, names->sh_offset, names->sh_size, 1) ||
			image->bytes[names->sh_offset + names->sh_size - 1])
			continue;
		image->symbols = (const Elf64_Sym *)(image->bytes + table->sh_offset);
		image->symbol_count = table->sh_size / sizeof(*image->symbols);
		image->names = (const char *)image->bytes + names->sh_offset;
		image->names_size = names->sh_size;
		return true;
	}
	return false;
}

bool image_parse(struct image *image, const void *bytes, size_t size)
{
	const Elf64_Ehdr *header = bytes;
	const Elf64_Shdr *sections;

	*image = (struct image){.bytes = bytes, .size = size};
	if (size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_ident[EI_CLASS] != ELFCLASS64 ||
		header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_X86_64 ||
		header->e_shentsize != sizeof(Elf64_Shdr) ||
		!inside(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr),
			8))
		return false;
	sections = (const Elf64_Shdr *)(image->bytes + header->e_shoff);
	if (!find_symbols(image, sections, header->e_shnum, SHT_SYMTAB))
		find_symbols(image, sections, header->e_shnum, SHT_DYNSYM);
	return true;
}

bool image_open(struct image *image, const char *path)
{
	struct stat status;
	void *bytes = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	if (image_parse(image, bytes, (size_t)status.st_size))
		return true;
	munmap(bytes, (size_t)status.st_size);
	return false;
}

void image_close(struct image *image)
{
	munmap((void *)image->bytes, image->size);
	*image = (struct image){0};
}

bool image_has_name(const struct image *image, const char *name)
{
	return image->names && memmem(image->names, image->names_size, name, strlen(name) + 1);
}

bool image_has_text(const struct image *image, const char *text)
{
	return memmem(image->bytes, image->size, text, strlen(text) + 1);
}

struct loaded_tables loaded_tables(const struct dl_phdr_info *info)
{
	struct loaded_tables t = {0};

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			t.dynamic =
				(const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (const Elf64_Dyn *d = t.dynamic; d && d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: t.symbols = (const void *)d->d_un.d_ptr; break;
		case DT_STRTAB: t.names = (const void *)d->d_un.d_ptr; break;
		case DT_STRSZ: t.names_size = d->d_un.d_val; break;
		case DT_VERSYM: t.versions = (const void *)d->d_un.d_ptr; break;
		case DT_SONAME: t.soname = d->d_un.d_val; break;
		case DT_GNU_HASH: t.hash = (const void *)d->d_un.d_ptr; break;
		case DT_JMPREL: t.stubs = (const void *)d->d_un.d_ptr; break;
		case DT_RELA: t.relatives = (const void *)d->d_un.d_ptr; break;
		case DT_RELACOUNT: t.relative_count = d->d_un.d_val; break;
		case DT_PLTRELSZ: t.stub_count = d->d_un.d_val / sizeof(*t.stubs); break;
		default: break;
		}
	}
	return t;
}

size_t loaded_import_count(const struct dl_phdr_info *info, const struct loaded_tables *tables)
{
	const char *symbols = (const char *)tables->symbols, *names = tables->names;
	size_t count;

	/* The vdso's are not relocated: below its own base. */
	if (!symbols || !names || !tables->names_size || (uintptr_t)names < info->dlpi_addr ||
		(uintptr_t)symbols < info->dlpi_addr)
		return 0;
	/* Imports come first; the GNU hash table says where the exports begin, unless there are
	 * none. Then the strings, which follow, are the limit. */
	count = tables->hash && tables->hash[1] > 1 ? tables->hash[1] : 0;
	if (!count && symbols < names)
		count = (size_t)(names - symbols) / sizeof(*tables->symbols);
	return count < IMPORTS_MOST ? count : IMPORTS_MOST;
}

const Elf64_Phdr *loaded_part(
	const struct dl_phdr_info *info, uint64_t value, uint64_t bytes, uint32_t flags)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & flags) == flags &&
			value >= part->p_vaddr && bytes <= part->p_filesz &&
			value - part->p_vaddr <= part->p_filesz - bytes)
			return part;
	}
	return NULL;
}

bool loaded_code_protect(const struct dl_phdr_info *info, int extra)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	bool done = true;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + part->p_vaddr) & ~(page - 1);
		uintptr_t to = info->dlpi_addr + part->p_vaddr + part->p_filesz;

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X))
			done &= !mprotect(
				(void *)from, to - from, PROT_READ | PROT_EXEC | extra);
	}
	return done;
}

bool image_next_function(const struct image *image, size_t *at, struct image_function *function)
{
	while (*at < image->symbol_count) {
		const Elf64_Sym *symbol = &image->symbols[(*at)++];

		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
			symbol->st_shndx == SHN_UNDEF || symbol->st_name >= image->names_size)
			continue;
		*function = (struct image_function){
			.name = image->names + symbol->st_name,
			.value = symbol->st_value,
			.size = symbol->st_size,
		};
		return true;
	}
	return false;
}
