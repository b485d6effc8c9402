/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds-checked reading of ELF files (elf.h).  A file that does not keep to the format has
 * no sections, and with that nothing to redirect.
 */
#include "shim/loader/elf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* [offset, + bytes) lies in the file and is aligned for what is read there. */
static bool inside(const struct image *image, uint64_t offset, uint64_t bytes, size_t align)
{
	return offset <= image->size && bytes <= image->size - offset && offset % align == 0;
}

static bool section_inside(const struct image *image, const Elf64_Shdr *section, size_t align)
{
	return section->sh_type != SHT_NOBITS &&
	       inside(image, section->sh_offset, section->sh_size, align);
}

bool image_parse(struct image *image, const void *bytes, size_t size)
{
	const Elf64_Ehdr *header = bytes;
	const Elf64_Shdr *names;

	*image = (struct image){.bytes = bytes, .size = size};
	if (size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_ident[EI_CLASS] != ELFCLASS64 ||
		header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_X86_64 ||
		header->e_shentsize != sizeof(Elf64_Shdr) ||
		header->e_shstrndx >= header->e_shnum ||
		!inside(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr),
			8))
		return false;

	image->sections = (const Elf64_Shdr *)(image->bytes + header->e_shoff);
	names = &image->sections[header->e_shstrndx];
	if (!section_inside(image, names, 1) || !names->sh_size ||
		image->bytes[names->sh_offset + names->sh_size - 1])
		return false;
	image->names = (const char *)image->bytes + names->sh_offset;
	image->names_size = names->sh_size;
	image->section_count = header->e_shnum;
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

const Elf64_Shdr *image_section(const struct image *image, const char *name)
{
	for (size_t i = 0; i < image->section_count; i++) {
		const Elf64_Shdr *section = &image->sections[i];

		if (section->sh_name < image->names_size &&
			!strcmp(image->names + section->sh_name, name))
			return section_inside(image, section, 1) ? section : NULL;
	}
	return NULL;
}

bool image_next_function(const struct image *image, size_t *at, struct image_function *function)
{
	const Elf64_Shdr *table = image_section(image, ".symtab");
	const Elf64_Shdr *strings = image_section(image, ".strtab");
	const Elf64_Sym *symbols;
	const char *text;

	if (!table || !strings || !section_inside(image, table, 8) || !strings->sh_size ||
		image->bytes[strings->sh_offset + strings->sh_size - 1])
		return false;
	symbols = (const Elf64_Sym *)(image->bytes + table->sh_offset);
	text = (const char *)image->bytes + strings->sh_offset;

	for (; *at < table->sh_size / sizeof(*symbols); ++*at) {
		const Elf64_Sym *symbol = &symbols[*at];

		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
			symbol->st_shndx == SHN_UNDEF || symbol->st_name >= strings->sh_size)
			continue;
		*function = (struct image_function){
			.name = text + symbol->st_name,
			.value = symbol->st_value,
			.size = symbol->st_size,
		};
		++*at;
		return true;
	}
	return false;
}
