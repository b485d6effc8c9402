/* SPDX-License-Identifier: Apache-2.0
 *
 * ELF files of loaded objects, read with every bound checked: is a CUDA runtime linked in, and
 * where are its functions?
 */
#ifndef VCUDA_SHIM_LOADER_ELF_H
#define VCUDA_SHIM_LOADER_ELF_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
	const unsigned char *bytes; /* the whole file, mapped read-only */
	size_t size;
	const Elf64_Sym *symbols; /* of .symtab, or of .dynsym where the file is stripped */
	size_t symbol_count;
	const char *names; /* of the symbols, closed by a 0 within names_size */
	size_t names_size;
};

/* Maps a file. False, with nothing left open, where it is no x86-64 ELF file. */
bool image_open(struct image *image, const char *path);
/* The same over bytes in memory, which stay the caller's (tests, fuzzing). */
bool image_parse(struct image *image, const void *bytes, size_t size);
void image_close(struct image *image);

/* True where some symbol has that name or one that ends so (linkers store the two in one
 * place): much faster than to go through all of them. */
bool image_has_name(const struct image *image, const char *name);

/* True where the file holds that text, closed by a 0: a runtime keeps the names of its
 * functions for profilers, whether its symbols were stripped or not. */
bool image_has_text(const struct image *image, const char *text);

/* What a loaded object tells the dynamic linker, as far as it is looked at here; NULL or 0: it
 * does not. */
struct loaded_tables {
	const Elf64_Dyn *dynamic;
	const Elf64_Sym *symbols;
	const char *names; /* of the symbols, names_size bytes of them */
	size_t names_size;
	const uint32_t *hash;	  /* GNU's */
	const uint16_t *versions; /* a number for each symbol */
	uint64_t soname;	  /* where among the names; 0: it has none */
	const Elf64_Rela *stubs;  /* for the functions that it calls by stubs */
	size_t stub_count;
	const Elf64_Rela *relatives; /* its first relocations */
	size_t relative_count;	     /* how many of them add the object's base */
};
struct loaded_tables loaded_tables(const struct dl_phdr_info *info);
/* How many of its first symbols to look at for what it imports; 0: its tables are not to be
 * read. */
size_t loaded_import_count(const struct dl_phdr_info *info, const struct loaded_tables *tables);

/* The segment of a loaded object that all of these bytes of its file lie in, with those rights;
 * NULL: there is none. */
const Elf64_Phdr *loaded_part(
	const struct dl_phdr_info *info, uint64_t value, uint64_t bytes, uint32_t flags);
/* The object's code may be read and run from now on, and what EXTRA says (PROT_WRITE; 0).
 * False: some of it stays as it is. */
bool loaded_code_protect(const struct dl_phdr_info *info, int extra);

/* One function of the file's symbol table. */
struct image_function {
	const char *name;
	uint64_t value; /* st_value */
	uint64_t size;
};

/* Goes through the defined functions: *at starts at 0. False at the end. */
bool image_next_function(
	const struct image *image, size_t *at, struct image_function *function);

#endif
