/* SPDX-License-Identifier: Apache-2.0 */
#include "command/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#else
#define OUR_MACHINE EM_AARCH64
#endif

struct file {
	const unsigned char *bytes;
	uint64_t n;
};

static bool inside(const struct file *file, uint64_t offset, uint64_t length)
{
	return offset <= file->n && length <= file->n - offset;
}

/* A copy, since nothing in a file needs to be aligned. */
static bool get(const struct file *file, uint64_t offset, void *to, size_t n)
{
	if (!inside(file, offset, n))
		return false;
	memcpy(to, file->bytes + offset, n);
	return true;
}

/* A NUL-terminated string at `offset` of a table. */
static bool named(
	const struct file *file, const Elf64_Shdr *table, uint64_t offset, const char *name)
{
	uint64_t length = strlen(name) + 1;

	return table->sh_type == SHT_STRTAB && offset <= table->sh_size &&
	       length <= table->sh_size - offset &&
	       inside(file, table->sh_offset, table->sh_size) &&
	       !memcmp(file->bytes + table->sh_offset + offset, name, length);
}

static void look_segments(
	const struct file *file, const Elf64_Ehdr *header, struct elf_facts *facts)
{
	for (uint16_t i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		uint64_t n;

		if (!get(file, header->e_phoff + (uint64_t)i * sizeof(segment), &segment,
			    sizeof(segment)))
			return;
		if (segment.p_type != PT_INTERP ||
			!inside(file, segment.p_offset, segment.p_filesz))
			continue;
		n = segment.p_filesz < sizeof(facts->interpreter)
			    ? segment.p_filesz
			    : sizeof(facts->interpreter) - 1;
		memcpy(facts->interpreter, file->bytes + segment.p_offset, n);
	}
}

static bool section_at(
	const struct file *file, const Elf64_Ehdr *header, uint32_t i, Elf64_Shdr *section)
{
	return i < header->e_shnum && header->e_shentsize == sizeof(*section) &&
	       get(file, header->e_shoff + (uint64_t)i * sizeof(*section), section,
		       sizeof(*section));
}

/* The runtime's functions, defined in the file itself. */
static void look_symbols(const struct file *file, const Elf64_Shdr *table,
	const Elf64_Shdr *names, struct elf_facts *facts)
{
	uint64_t count = table->sh_size / sizeof(Elf64_Sym);

	if (!inside(file, table->sh_offset, table->sh_size))
		return;
	facts->symbols = true;
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Sym symbol;

		if (!get(file, table->sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol)))
			return;
		if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
			(named(file, names, symbol.st_name, "cudaMalloc") ||
				named(file, names, symbol.st_name,
					"__cudaRegisterFatBinary"))) {
			facts->static_cudart = true;
			return;
		}
	}
}

static void look_sections(
	const struct file *file, const Elf64_Ehdr *header, struct elf_facts *facts)
{
	Elf64_Shdr names, section, strings;

	if (!section_at(file, header, header->e_shstrndx, &names))
		return;
	for (uint32_t i = 0; section_at(file, header, i, &section); i++) {
		if (named(file, &names, section.sh_name, ".nv_fatbin") ||
			named(file, &names, section.sh_name, ".nvFatBinSegment"))
			facts->device_code = true;
		if (section.sh_type == SHT_SYMTAB &&
			section_at(file, header, section.sh_link, &strings))
			look_symbols(file, &section, &strings, facts);
	}
}

/* The word of the first line at *at; moves *at behind it. */
static void script_word(const struct file *file, uint64_t *at, char *word, size_t most)
{
	uint64_t n = 0;

	while (*at < file->n && file->bytes[*at] == ' ')
		++*at;
	while (*at < file->n && n < most - 1 && !memchr(" \t\n\r", file->bytes[*at], 5))
		word[n++] = (char)file->bytes[(*at)++];
	word[n] = 0;
}

/* #!/usr/bin/python3, or #!/usr/bin/env python3: then the name is to be looked up. */
static void look_script(const struct file *file, struct elf_facts *facts)
{
	uint64_t at = 2;
	size_t n;

	script_word(file, &at, facts->script, sizeof(facts->script));
	n = strlen(facts->script);
	if (n >= 4 && !strcmp(facts->script + n - 4, "/env"))
		script_word(file, &at, facts->script, sizeof(facts->script));
}

void elf_look(const unsigned char *bytes, uint64_t n, struct elf_facts *facts)
{
	struct file file = {bytes, n};
	Elf64_Ehdr header;

	memset(facts, 0, sizeof(*facts));
	if (n >= 2 && bytes[0] == '#' && bytes[1] == '!') {
		look_script(&file, facts);
		return;
	}
	if (!get(&file, 0, &header, sizeof(header)) ||
		memcmp(header.e_ident, ELFMAG, SELFMAG) ||
		header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != OUR_MACHINE)
		return;
	facts->elf = true;
	if (header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phoff <= n)
		look_segments(&file, &header, facts);
	if (header.e_shoff <= n)
		look_sections(&file, &header, facts);
}

int elf_read(const char *path, struct elf_facts *facts, struct error *error)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *bytes;

	memset(facts, 0, sizeof(*facts));
	if (fd < 0 || fstat(fd, &st))
		return error_set(error, errno, "%s", path);
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return error_set(error, 0, "%s is no program", path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return error_set(error, errno, "%s", path);
	elf_look(bytes, (uint64_t)st.st_size, facts);
	munmap(bytes, (size_t)st.st_size);
	return 0;
}
