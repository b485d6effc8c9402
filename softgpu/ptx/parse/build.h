/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of reading one module: symbols, the function being read, and the code so far.
 * parse.c reads directives, decode*.c (softgpu/ptx/decode) turn one statement into
 * instructions, build.c keeps the growing arrays and the symbols.
 */
#ifndef VCUDA_SOFTGPU_PTX_PARSE_BUILD_H
#define VCUDA_SOFTGPU_PTX_PARSE_BUILD_H

#include <setjmp.h>

#include "softgpu/ptx/internal.h"
#include "softgpu/ptx/parse/scan.h"
#include "softgpu/ptx/texture.h"

enum ptx_symbol_kind {
	PTX_SYM_REG,	 /* value: operand; size */
	PTX_SYM_RANGE,	 /* slots[count] */
	PTX_SYM_GLOBAL,	 /* value: offset in the module's block */
	PTX_SYM_SHARED,	 /* value: index into the build's `shared` */
	PTX_SYM_DYNAMIC, /* the launch's shared memory */
	PTX_SYM_FRAME,	 /* value: offset in the frame: .local, and .param inside a function */
	PTX_SYM_PARAM,	 /* value: offset in the kernel's parameters */
	PTX_SYM_FUNCTION,
	PTX_SYM_PROTOTYPE,
	PTX_SYM_TARGETS, /* .branchtargets */
	PTX_SYM_LABEL,
};

struct ptx_symbol {
	struct ptx_symbol *outer; /* same name, outer scope */
	struct ptx_symbol *below; /* declared before it in this scope */
	struct ptx_name *name;
	enum ptx_symbol_kind kind;
	uint32_t size;	/* bytes: of the register, or of the variable */
	uint32_t count; /* of a range, of targets */
	uint64_t value;
	bool own;
	bool bound;   /* a variable at the address `value`, of no module */
	bool awaited; /* declared, and its place is kept: the definition may follow */
	uint32_t *slots;
	uint32_t *mentions; /* of a register, of each of a range: see ptx_build_mentions */
	struct ptx_word *targets;
	uint32_t depth; /* scope */
	uint64_t bytes;
	uint32_t element; /* bytes of one of an array's */
};

struct ptx_name {
	struct ptx_name *next;
	struct ptx_word word;
	struct ptx_symbol *symbol;
};

enum ptx_operand_kind {
	PTX_OPERAND_WORD,
	PTX_OPERAND_NUMBER,
	PTX_OPERAND_LIST,    /* { } */
	PTX_OPERAND_GROUP,   /* ( ) */
	PTX_OPERAND_ADDRESS, /* [ ] */
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	bool negated; /* ! */
	bool minus;   /* - before a register */
	struct ptx_word word;
	struct ptx_word part;	/* x of %tid.x */
	struct ptx_word second; /* q of p|q */
	struct ptx_number number;
	int64_t offset;
	struct ptx_word index; /* r of a[r], in elements */
	struct ptx_operand *items;
	uint32_t nitems;
};

#define PTX_MAX_MODS 16
#define PTX_MAX_OPERANDS 12

struct ptx_statement {
	int line;
	struct ptx_word root;
	struct ptx_word mods[PTX_MAX_MODS];
	char mod[PTX_MAX_MODS][40]; /* the same as strings */
	uint32_t nmods;
	struct ptx_operand operands[PTX_MAX_OPERANDS];
	uint32_t noperands;
	struct ptx_word text; /* opcode with its dots, for messages */
};

/* What a value of the pool is relative to, where that is not known while decoding; from
 * PTX_IN_SHARED on: that plus the index of a shared variable. */
enum { PTX_FIXED, PTX_IN_BLOCK, PTX_IN_SHARED };

/* A .shared variable (shared.c). */
struct ptx_shared {
	uint32_t bytes, align;
	uint32_t offset;  /* once it is placed */
	uint32_t kernels; /* that reach it */
	bool everywhere;  /* its address is in memory: any kernel may reach it */
};

/* A function names the variable; or a kernel reaches it. */
struct ptx_shared_use {
	uint32_t function, variable;
};

/* A function names a variable that is not defined yet. */
struct ptx_awaiting {
	const struct ptx_symbol *symbol;
	uint32_t function;
	int line;
};

struct ptx_relocation {
	uint32_t offset, size;
	uint32_t base; /* PTX_IN_… */
};

/* .alias: a function that is declared is another one. */
struct ptx_alias {
	struct ptx_alias *next;
	struct ptx_word name, of;
	int line;
};

struct ptx_fixup {
	uint32_t ins;
	struct ptx_word label;
	uint32_t depth;
	int line;
};

/* An address in an initialiser, to be written once the block is there. */
struct ptx_pointer {
	uint64_t at, value;
	uint8_t bytes, shift;
	bool in_block;
	struct ptx_word name; /* of a function or variable that may come later */
	int line;
};

struct ptx_constant {
	struct ptx_constant *next;
	uint64_t value;
	uint32_t size, operand;
	uint32_t base;
};

struct ptx_chunk {
	struct ptx_chunk *next;
	size_t used, size;
	unsigned char bytes[];
};

/* A load of a fragment, and where its registers are counted. */
#define PTX_FRAGMENT 8 /* registers at most */
struct ptx_fragment_load {
	uint32_t ins, count;
	const uint32_t *mentions[PTX_FRAGMENT];
};

#define PTX_NAME_BUCKETS 4096
#define PTX_CONSTANT_BUCKETS 1024
#define PTX_SIZE_CLASSES 5
#define PTX_MAX_TEMPS 32

struct ptx_build {
	struct ptx_scan scan;
	struct ptx_module *module;
	struct ptx_error *error;
	jmp_buf failed;	     /* the text is wrong: no module */
	jmp_buf unsupported; /* this statement: the function becomes unusable */
	bool in_statement;   /* `unsupported` is set */
	struct ptx_chunk *chunks;

	struct ptx_name *names[PTX_NAME_BUCKETS];
	struct ptx_symbol *scope;
	uint32_t depth;
	struct ptx_constant *constants[PTX_CONSTANT_BUCKETS];

	uint32_t code_room, pool_room, function_room, global_room, call_room;
	struct ptx_relocation *relocations;
	uint32_t nrelocations, relocation_room;
	struct ptx_shared *shared;
	uint32_t nshared, shared_room;
	struct ptx_alias *aliases;
	struct ptx_shared_use *uses, *pairs;
	uint32_t nuses, use_room;
	struct ptx_awaiting *awaiting;
	uint32_t nawaiting, awaiting_room;
	struct ptx_fixup *fixups; /* branches of this function whose label is not resolved */
	uint32_t nfixups, fixup_room;
	uint32_t *branches; /* instructions whose imm is a target's index */
	uint32_t nbranches, branch_room;
	struct ptx_pointer *pointers;
	uint32_t npointers, pointer_room;
	unsigned char *data; /* initial contents of the block */
	size_t data_bytes, data_room;

	uint32_t function;	   /* index of the one being read; UINT32_MAX at module scope */
	struct ptx_word *ret_regs; /* .reg results of this function */
	uint32_t nret_regs;
	uint32_t matrix[2];    /* registers of mma, of 4 and of 8 bytes; 0: none yet */
	uint32_t fragments[2]; /* the same of wmma */
	struct ptx_fragment_load *loads; /* of this function */
	uint32_t nloads, load_room;
	uint32_t bulk;	     /* of bulk copies */
	uint32_t texture[2]; /* and of textures and surfaces: see decode_texture.c */
	uint32_t temps[PTX_SIZE_CLASSES][PTX_MAX_TEMPS];
	uint32_t ntemps[PTX_SIZE_CLASSES], used_temps[PTX_SIZE_CLASSES];

	/* The statement being decoded. */
	uint32_t statement; /* how many there were, with it */
	struct ptx_statement st;
	struct ptx_word guard;
	bool guarded, guard_not;
	bool flow;	/* it holds an instruction that a guard cannot wrap */
	uint32_t first; /* its first instruction */
};

/* The text is of a PTX that is too new. */
_Noreturn void ptx_build_newer(struct ptx_build *b, int line);
_Noreturn void ptx_build_fail(struct ptx_build *b, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The statement is nothing that the interpreter serves: its function cannot be launched. */
_Noreturn void ptx_build_lacks(struct ptx_build *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The statement is no PTX: there is no module. */
#define ptx_build_wrong(B, ...) ptx_build_fail(B, (B)->st.line, __VA_ARGS__)

/* known.c: whether PTX has what the interpreter does not know. */
bool ptx_known_opcode(struct ptx_word word);
bool ptx_known_register(struct ptx_word word);
bool ptx_known_modifier(const char *mod);

/* shared.c: a new variable's index; the function that is read names it; where they all lie,
 * once all is read. */
uint32_t ptx_shared_add(struct ptx_build *b, uint64_t bytes, uint32_t align);
void ptx_shared_use(struct ptx_build *b, uint32_t variable);
void ptx_shared_layout(struct ptx_build *b);

void *ptx_build_alloc(struct ptx_build *b, size_t size); /* zeroed; lives as long as b */
void *ptx_build_grow(
	struct ptx_build *b, void *array, uint32_t used, uint32_t *room, size_t item);

struct ptx_symbol *ptx_build_symbol(
	struct ptx_build *b, struct ptx_word word, enum ptx_symbol_kind kind);
struct ptx_symbol *ptx_build_find(struct ptx_build *b, struct ptx_word word);
void ptx_build_open(struct ptx_build *b);
void ptx_build_close(struct ptx_build *b);

struct ptx_function *ptx_build_function(struct ptx_build *b); /* the one being read */
/* A register of `size` bytes (1: predicate) of this function. */
uint32_t ptx_build_reg(struct ptx_build *b, uint32_t size);
uint32_t ptx_build_temp(struct ptx_build *b, uint32_t size); /* until the statement's end */
uint32_t ptx_build_constant(struct ptx_build *b, uint32_t size, uint64_t value, uint32_t base);
uint32_t ptx_build_frame(struct ptx_build *b, uint32_t size, uint32_t align);
/* The function being read cannot run if the variable is not defined in the end. */
void ptx_build_await(struct ptx_build *b, const struct ptx_symbol *symbol);
void ptx_build_awaited(struct ptx_build *b);

/* Appends an instruction; NULL name is not allowed.  The handler must exist, or the statement
 * is not supported. */
struct ptx_ins *ptx_build_emit(struct ptx_build *b, const char *name);
void ptx_build_target(struct ptx_build *b, struct ptx_word label); /* of the last instruction */
bool ptx_build_register(struct ptx_build *b, struct ptx_word word, uint32_t *operand,
	uint32_t *size); /* false: no register of that name */
/* Which statement names the register: 0 none, UINT32_MAX more than one.  NULL: no register. */
const uint32_t *ptx_build_mentions(struct ptx_build *b, struct ptx_word word);
/* The function's loads of fragments that no other statement names do nothing. */
void ptx_build_drop_loads(struct ptx_build *b);

/* One operand of the statement, DEPTH lists deep. */
void ptx_read_operand(struct ptx_build *b, struct ptx_operand *o, unsigned depth);
/* One statement; the scanner stands behind its opcode's first word. */
void ptx_decode(struct ptx_build *b);
void ptx_statement_end(struct ptx_build *b);

/* Helpers of the decoders (operand.c). */
uint32_t ptx_type_bytes(const char *type); /* 0: not a type; pred is 1 */
uint32_t ptx_in(struct ptx_build *b, const struct ptx_operand *o, uint32_t size);
struct ptx_out {
	uint32_t operand; /* write here */
	uint32_t final;	  /* then widen into this; 0: nothing to do */
	uint32_t size, final_size;
	bool is_signed;
};
struct ptx_out ptx_out(
	struct ptx_build *b, const struct ptx_operand *o, uint32_t size, bool is_signed);
void ptx_out_finish(struct ptx_build *b, const struct ptx_out *out);
bool ptx_type_is_int(const char *type);
bool ptx_mod_in(const char *mod, const char *list); /* one of the words of LIST */
const char *ptx_word_text(struct ptx_build *b, struct ptx_word word);
bool ptx_has_mod(const struct ptx_statement *st, const char *mod);
const struct ptx_operand *ptx_arg(struct ptx_build *b, uint32_t index); /* or fails */
bool ptx_is_sink(const struct ptx_operand *o);
struct ptx_operand ptx_word_operand(struct ptx_word word);

/* Families of instructions. */
void ptx_decode_memory(struct ptx_build *b); /* ld ldu st */
void ptx_decode_atomic(struct ptx_build *b); /* atom red */
void ptx_decode_cvta(struct ptx_build *b);
void ptx_decode_isspacep(struct ptx_build *b);
void ptx_decode_mapa(struct ptx_build *b);
void ptx_decode_cp_async(struct ptx_build *b);
void ptx_decode_mbarrier(struct ptx_build *b);
void ptx_decode_bulk(struct ptx_build *b); /* cp.async.bulk, cp.reduce */
void ptx_decode_createpolicy(struct ptx_build *b);
void ptx_decode_tensormap(struct ptx_build *b);
void ptx_decode_matrix(struct ptx_build *b); /* ldmatrix stmatrix mma movmatrix */
void ptx_decode_tex(struct ptx_build *b);    /* tex tld4 */
void ptx_decode_txq(struct ptx_build *b);    /* txq suq */
void ptx_decode_istypep(struct ptx_build *b);
void ptx_decode_suld(struct ptx_build *b);
void ptx_decode_sust(struct ptx_build *b);
void ptx_decode_sured(struct ptx_build *b);
void ptx_decode_video(struct ptx_build *b);
void ptx_decode_wmma(struct ptx_build *b);
void ptx_decode_call(struct ptx_build *b);
void ptx_decode_ret(struct ptx_build *b);
void ptx_decode_bra(struct ptx_build *b);
void ptx_decode_brx(struct ptx_build *b);
void ptx_decode_bar(struct ptx_build *b);
void ptx_decode_sync(struct ptx_build *b); /* shfl vote match redux elect */
void ptx_decode_mov(struct ptx_build *b);
void ptx_decode_cvt(struct ptx_build *b);
void ptx_decode_setp(struct ptx_build *b);
void ptx_decode_set(struct ptx_build *b);
void ptx_decode_lop3(struct ptx_build *b);
/* The operand and kind of an address operand: see decode/decode_memory.c. */
struct ptx_address {
	char space; /* G S L F P A */
	uint32_t reg;
	uint64_t imm;
};
struct ptx_address ptx_address(struct ptx_build *b, const struct ptx_operand *o, char space);
/* In the space that the statement names, made a generic one. */
struct ptx_address ptx_address_generic(struct ptx_build *b, const struct ptx_operand *o);
/* The same in this space. */
struct ptx_address ptx_address_in(struct ptx_build *b, const struct ptx_operand *o, char space);

#endif
