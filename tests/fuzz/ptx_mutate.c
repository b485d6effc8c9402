/* SPDX-License-Identifier: Apache-2.0
 *
 * How the fuzzer changes a PTX text: by words and lines, so that most of what comes out is
 * still nearly PTX.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

#define TEXT_MAX (1u << 16)

static const char *const words[] = {".u8", ".s8", ".b16", ".f16", ".bf16", ".f16x2", ".u32",
	".s32", ".b32", ".f32", ".u64", ".s64", ".b64", ".f64", ".b128", ".pred", ".v2", ".v4",
	".v8", ".sat", ".ftz", ".rn", ".rz", ".wide", ".hi", ".lo", ".global", ".shared",
	".local", ".param", ".const", ".sync", ".aligned", ".relaxed", ".gpu", ".cc", ".approx",
	".x4", ".trans", "bra", "ret", "exit", "call", "brx.idx", "ld", "st", "atom", "red",
	"mov", "cvt", "cvta", "setp", "selp", "shfl.sync.idx", "bar.sync",
	"barrier.cluster.arrive", "mbarrier.init", "mma", "wmma", "ldmatrix", "vadd",
	"cp.async", "alloca", "prmt", "@p", "@!p", "{", "}", "(", ")", "[", "]", ";", ",", ":",
	"|", "!", "-", "+", "_", "%tid.x", "%laneid", "%envreg1", "%dynamic_smem_size", "0",
	"1", "-1", "31", "32", "64", "255", "65535", "65536", "4294967295", "2147483648",
	"18446744073709551615", "9223372036854775808", "0f7FFFFFFF", "0d7FF0000000000000",
	"1e999", ".align", ".reg", ".func", ".entry", ".extern", ".visible", ".maxntid",
	".branchtargets", ".callprototype"};

static uint64_t state;

static size_t any(size_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return below ? (size_t)(state >> 33) % below : 0;
}

struct piece {
	size_t at, n;
};

static int in_word(uint8_t c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* A word of the text, or one other character. */
static struct piece some_word(const uint8_t *data, size_t size)
{
	struct piece p = {any(size), 1};

	while (p.at < size && isspace(data[p.at]))
		p.at++;
	if (p.at == size)
		return (struct piece){size - 1, 1};
	if (!in_word(data[p.at]))
		return p;
	while (p.at && in_word(data[p.at - 1]) && data[p.at] != '.')
		p.at--;
	while (p.at + p.n < size && in_word(data[p.at + p.n]) && data[p.at + p.n] != '.')
		p.n++;
	return p;
}

static struct piece some_line(const uint8_t *data, size_t size)
{
	struct piece p = {any(size), 1};

	while (p.at && data[p.at - 1] != '\n')
		p.at--;
	while (p.at + p.n < size && data[p.at + p.n - 1] != '\n')
		p.n++;
	return p;
}

/* Bytes instead of a piece of the text; the new size. */
static size_t put(
	uint8_t *data, size_t size, size_t room, struct piece p, const void *bytes, size_t n)
{
	if (size - p.n + n > room)
		return size;
	memmove(data + p.at + n, data + p.at + p.n, size - p.at - p.n);
	memcpy(data + p.at, bytes, n);
	return size - p.n + n;
}

static size_t change(uint8_t *data, size_t size, size_t room)
{
	static uint8_t held[TEXT_MAX];
	struct piece from, to;
	const char *word;

	switch (any(8)) {
	case 0: return LLVMFuzzerMutate(data, size, room);
	case 1:
	case 2:
		word = words[any(sizeof(words) / sizeof(words[0]))];
		return put(data, size, room, some_word(data, size), word, strlen(word));
	case 3: return put(data, size, room, some_line(data, size), "", 0);
	case 4:
		from = some_line(data, size);
		to = some_line(data, size);
		to.n = 0;
		break;
	default:
		from = some_word(data, size);
		to = some_word(data, size);
		break;
	}
	memcpy(held, data + from.at, from.n);
	return put(data, size, room, to, held, from.n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	state = seed;
	if (!size || size > TEXT_MAX)
		return LLVMFuzzerMutate(data, size, room);
	for (size_t times = 1 + any(4); times && size; times--)
		size = change(data, size, room);
	return size;
}
