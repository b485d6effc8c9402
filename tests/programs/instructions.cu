// SPDX-License-Identifier: Apache-2.0
/*
 * Single instructions with random and edge operands, against what another device gave.
 *
 * instructions --record          prints a line for each form: 32 bits over all results, and a
 * character for each of the 64 cases; where devices may differ within bounds the results
 * themselves. It is what tests/programs/instructions-h200.txt is.
 * instructions --against FILE    compares with such a record
 * instructions --show FORM       operands and results of one form on this device
 * instructions --text            the PTX, to read
 *
 * Without a record there is nothing to hold a result against, and it says so.  Forms and what
 * their letters mean: instruction-forms.h.  Operands come from the form's name alone.
 */
#include "driver.h"
#include "instruction-forms.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string>
#include <vector>

static ENTRY(cuModuleLoadData);
static ENTRY(cuModuleGetFunction);
static ENTRY(cuModuleUnload);
static ENTRY(cuLaunchKernel);

enum { CASES = 64, SLOTS = 20, RESULTS = 8, BATCH = 64 };

struct operand {
	char kind;
	int count; /* registers in a list; 0: one, and no list */
};
struct form {
	std::string name; /* the instruction as it stands in the record */
	const struct family *family;
	std::string text, tail;
	operand result;
	std::vector<operand> inputs;
};

/* ---- Forms ---- */

static void spell(const std::string &text, std::vector<std::string> *out)
{
	size_t open = text.find('{'), close = text.find('}', open), from = open + 1;

	if (open == std::string::npos) {
		out->push_back(text);
		return;
	}
	while (from <= close) {
		size_t comma = text.find(',', from), end = comma < close ? comma : close;

		spell(text.substr(0, open) + text.substr(from, end - from) +
				text.substr(close + 1),
			out);
		from = end + 1;
	}
}

static std::vector<operand> read_operands(const char *p)
{
	std::vector<operand> list;

	while (*p) {
		operand o = {*p++, 0};

		if (isdigit(*p))
			o.count = *p++ - '0';
		if (o.kind != ' ')
			list.push_back(o);
	}
	return list;
}

static std::vector<form> all_forms()
{
	std::vector<form> forms;

	for (const struct family &family : families) {
		std::vector<std::string> texts, tails;
		std::vector<operand> operands = read_operands(family.operands);

		spell(family.text, &texts);
		spell(family.tail ? family.tail : "", &tails);
		for (const std::string &text : texts)
			for (const std::string &tail : tails) {
				form f = {text + tail, &family, text, tail, operands[0],
					{operands.begin() + 1, operands.end()}};

				forms.push_back(f);
			}
	}
	return forms;
}

/* ---- Operands: from the name alone, so that a new form changes no other ---- */

static uint64_t random_state;

static uint64_t next()
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dull >> 16 | random_state << 48;
}

static uint64_t hash(const void *data, size_t n, uint64_t h = 0xcbf29ce484222325ull)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

template <typename T> static uint64_t bits_of(T value)
{
	uint64_t bits = 0;

	memcpy(&bits, &value, sizeof(value));
	return bits;
}

static uint64_t draw_integer(int size)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128,
		255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x55555555, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000};
	uint64_t v = next() % 2 ? edges[next() % (sizeof(edges) / sizeof(*edges))]
				: next() >> next() % 64;

	if (next() % 4 == 0)
		v = -v;
	return size == 64 ? v : v & ((1ull << size) - 1);
}

/* A format by its bits of exponent and mantissa: edges, any bits, and moderate numbers. */
static uint64_t draw_float(int exponent, int mantissa)
{
	uint64_t top = (1ull << exponent) - 1, one = top / 2 << mantissa, inf = top << mantissa;
	uint64_t edges[] = {0, 1, (1ull << mantissa) - 1, 1ull << mantissa, inf - 1, inf,
		inf | 1ull << (mantissa - 1), one, one + 1, one - 1, one - (1ull << mantissa),
		one | 1ull << (mantissa - 1), one + (3ull << (mantissa - 1)),
		one + ((uint64_t)mantissa << mantissa), one + (15ull << mantissa),
		exponent > 5 ? one + (31ull << mantissa) : 0,
		exponent > 5 ? one + (63ull << mantissa) : 0};
	uint64_t sign = (next() & 1) << (exponent + mantissa);
	uint64_t any = next() & ((1ull << (exponent + mantissa)) - 1);

	switch (next() % 4) {
	case 0:
	case 1: return sign | edges[next() % (sizeof(edges) / sizeof(*edges))];
	case 2: return sign | any;
	default:
		return sign | (top / 2 - 4 + (any >> mantissa) % 9) << mantissa |
		       (any & ((1ull << mantissa) - 1));
	}
}

/* A multiple of 1/4 from -2 to 2, as a number with so many bits. */
static uint64_t draw_small(int exponent, int mantissa)
{
	int v = (int)(next() % 17) - 8, power = 0;
	uint64_t sign = (uint64_t)(v < 0) << (exponent + mantissa);
	uint64_t magnitude = (uint64_t)abs(v);

	if (!v)
		return 0;
	while (magnitude >> (power + 1))
		power++;
	return sign | ((1ull << (exponent - 1)) - 1 - 2 + (uint64_t)power) << mantissa |
	       ((magnitude << mantissa >> power) & ((1ull << mantissa) - 1));
}

static double draw_moderate()
{
	double mantissa = 1 + (double)(next() >> 40) / (1 << 24);

	return ldexp(mantissa, (int)(next() % 40) - 20);
}

static uint64_t draw(char kind)
{
	uint64_t v;

	switch (kind) {
	case 'h': return draw_integer(16);
	case 'w': return draw_integer(32);
	case 'd': return draw_integer(64);
	case 'i':
	case 'j':
	case 'k':
		/* Neither 0 nor -1: PTX leaves open what they give. */
		do
			v = draw_integer(kind == 'i' ? 16 : kind == 'j' ? 32 : 64);
		while (!v || !(~v << (kind == 'i' ? 48 : kind == 'j' ? 32 : 0)));
		return v;
	case 's': return next() % 8 ? next() % 70 : draw_integer(32);
	case 'E': return draw_float(5, 10);
	case 'B': return draw_float(8, 7);
	case 'F': return draw_float(8, 23);
	case 'G': return draw_float(11, 52);
	case 'X': v = draw_float(5, 10); return v << 16 | draw_float(5, 10);
	case 'Y': v = draw_float(8, 7); return v << 16 | draw_float(8, 7);
	case 'c': return next() & 0xffff;
	case 'r': return bits_of((float)draw_moderate());
	case 'R': return bits_of(draw_moderate());
	case 'q': return bits_of((float)(((double)(next() >> 40) / (1 << 24) - 0.5) * 6.28));
	case 'p': return next() & 1;
	case 'x': v = draw_small(5, 10); return v << 16 | draw_small(5, 10);
	case 'y': v = draw_small(8, 7); return v << 16 | draw_small(8, 7);
	case 't': return draw_small(8, 23);
	case 'g': return draw_small(11, 52);
	default:
		v = 0;
		for (int i = 0; i < 4; i++)
			v = v << 8 | (kind == 'e' ? draw_small(4, 3) : draw_small(5, 2));
		return v;
	}
}

/* ---- The PTX ---- */

static const char *size_of(char kind)
{
	return strchr("hEBic", kind) ? "16" : strchr("dkGRg", kind) ? "64" : "32";
}

static std::string reg(int slot, char kind)
{
	return std::string(kind == 'p' ? "p" : "v") + std::to_string(slot);
}

/* The operands in their places; a list where there are several registers. */
static std::string operand_text(const operand &o, int slot)
{
	std::string text = o.count ? "{" : "";

	for (int i = 0; i < (o.count ? o.count : 1); i++)
		text += (i ? ", " : "") + reg(slot + i, o.kind);
	return text + (o.count ? "}" : "");
}

static std::string statement(const form &f)
{
	std::string text = f.text;
	int slot = RESULTS;

	if (text.find('%') == std::string::npos) {
		text += " " + operand_text(f.result, 0);
		for (const operand &o : f.inputs) {
			text += ", " + operand_text(o, slot);
			slot += o.count ? o.count : 1;
		}
		return text + f.tail + ";\n";
	}
	for (size_t at; (at = text.find('%')) != std::string::npos;) {
		int number = text[at + 1] - '0';

		text.replace(at, 2, reg(number ? RESULTS + number - 1 : 0, 'w'));
	}
	return text + ";\n";
}

static std::string kernel_text(const form &f, size_t number)
{
	std::string declared = ".reg .b64 in, out, at; .reg .b32 tid, t<4>;\n", load, store;
	int slot = RESULTS;

	for (const operand &o : f.inputs)
		for (int i = 0; i < (o.count ? o.count : 1); i++, slot++) {
			std::string size = size_of(o.kind), name = reg(slot, 'v');

			declared += ".reg .b" + size + " " + name + ";\n";
			load += "ld.global.b" + size + " " + name + ", [in+" +
				std::to_string((slot - RESULTS) * CASES * 8) + "];\n";
			if (o.kind == 'p') {
				declared += ".reg .pred " + reg(slot, 'p') + ";\n";
				load += "setp.ne.u32 " + reg(slot, 'p') + ", " + name +
					", 0;\n";
			}
		}
	for (int i = 0; i < (f.result.count ? f.result.count : 1); i++) {
		std::string size = size_of(f.result.kind), name = reg(i, 'v');

		declared +=
			".reg .b" + size + " " + name + "; .reg .pred " + reg(i, 'p') + ";\n";
		if (f.result.kind == 'p')
			store += "selp.b32 " + name + ", 1, 0, " + reg(i, 'p') + ";\n";
		store += "st.global.b" + size + " [out+" + std::to_string(i * CASES * 8) +
			 "], " + name + ";\n";
	}
	return ".visible .entry k" + std::to_string(number) +
	       "(.param .u64 pin, .param .u64 pout)\n{ " + declared +
	       "ld.param.u64 in, [pin]; ld.param.u64 out, [pout]; mov.u32 tid, %tid.x;\n"
	       "mad.wide.u32 in, tid, 8, in; mad.wide.u32 out, tid, 8, out;\n" +
	       load + statement(f) + store + "ret; }\n";
}

static std::string module_text(const std::vector<form> &forms, size_t from, size_t n)
{
	std::string text = ".version 8.4\n.target sm_90\n.address_size 64\n";

	for (size_t i = 0; i < n; i++)
		text += kernel_text(forms[from + i], i);
	return text;
}

/* ---- Running ---- */

struct outcome {
	bool refused; /* the device does not take the form */
	uint64_t input[SLOTS][CASES], result[RESULTS][CASES];
};

static uint64_t *device_input, *device_result;

static void draw_inputs(const form &f, outcome *o)
{
	int slot = 0;

	random_state = hash(f.name.data(), f.name.size()) | 1;
	for (const operand &in : f.inputs)
		for (int i = 0; i < (in.count ? in.count : 1); i++, slot++)
			for (int c = 0; c < CASES; c++)
				o->input[slot][c] = draw(in.kind);
}

static void run(const std::vector<form> &forms, size_t from, size_t n, outcome *out)
{
	std::string text = module_text(forms, from, n);
	CUmodule module;

	if (p_cuModuleLoadData(&module, text.c_str())) {
		out->refused = n == 1;
		if (n > 1) {
			run(forms, from, n / 2, out);
			run(forms, from + n / 2, n - n / 2, out + n / 2);
		}
		return;
	}
	for (size_t i = 0; i < n; i++) {
		draw_inputs(forms[from + i], &out[i]);
		CUDA(cudaMemcpy(device_input + i * SLOTS * CASES, out[i].input,
			sizeof(out[i].input), cudaMemcpyHostToDevice));
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t *in = device_input + i * SLOTS * CASES;
		uint64_t *to = device_result + i * RESULTS * CASES;
		void *args[] = {&in, &to};
		CUfunction function;

		DRIVER(p_cuModuleGetFunction(
			&function, module, ("k" + std::to_string(i)).c_str()));
		CUDA(cudaMemset(to, 0, RESULTS * CASES * 8));
		DRIVER(p_cuLaunchKernel(function, 1, 1, 1, CASES, 1, 1, 0, NULL, args, NULL));
		cudaError_t status = cudaDeviceSynchronize();

		if (status)
			FAIL("%s: %s", forms[from + i].name.c_str(), cudaGetErrorName(status));
	}
	for (size_t i = 0; i < n; i++)
		CUDA(cudaMemcpy(out[i].result, device_result + i * RESULTS * CASES,
			sizeof(out[i].result), cudaMemcpyDeviceToHost));
	DRIVER(p_cuModuleUnload(module));
}

/* ---- Results ---- */

static uint64_t one_nan(uint64_t v, int exponent, int mantissa)
{
	uint64_t all = (1ull << (exponent + mantissa)) - 1, inf = all >> mantissa << mantissa;

	return (v & all) > inf ? all : v;
}

/* PTX does not say which NaN comes out: all are one. */
static uint64_t canonical(char kind, uint64_t v)
{
	switch (kind) {
	case 'E': return one_nan(v, 5, 10);
	case 'B': return one_nan(v, 8, 7);
	case 'F': return one_nan(v, 8, 23);
	case 'G': return one_nan(v, 11, 52);
	case 'X': return one_nan(v >> 16, 5, 10) << 16 | one_nan(v & 0xffff, 5, 10);
	case 'Y': return one_nan(v >> 16, 8, 7) << 16 | one_nan(v & 0xffff, 8, 7);
	default: return v;
	}
}

static double value_of(char kind, uint64_t v)
{
	uint32_t low = (uint32_t)v;
	float f;
	double d;

	if (kind == 'B')
		low <<= 16;
	if (kind == 'E') {
		d = ldexp((double)(v & 1023) + (v >> 10 & 31 ? 1024 : 0),
			(int)(v >> 10 & 31 ? v >> 10 & 31 : 1) - 25);
		if ((v >> 10 & 31) == 31)
			d = v & 1023 ? (double)NAN : (double)INFINITY;
		return v & 0x8000 ? -d : d;
	}
	memcpy(&f, &low, sizeof(f));
	memcpy(&d, &v, sizeof(d));
	return kind == 'G' ? d : (double)f;
}

static bool is_approximate(const form &f)
{
	return f.family->relative > 0 || f.family->absolute > 0;
}

static bool is_near(const form &f, uint64_t got, uint64_t want)
{
	double x = value_of(f.result.kind, got), y = value_of(f.result.kind, want);

	if (canonical(f.result.kind, got) == canonical(f.result.kind, want))
		return true;
	if (!isfinite(x) || !isfinite(y))
		return false;
	return fabs(x - y) <= f.family->relative * fabs(y) || fabs(x - y) <= f.family->absolute;
}

static uint64_t case_hash(const form &f, const outcome &o, int c)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (int i = 0; i < (f.result.count ? f.result.count : 1); i++) {
		uint64_t v = canonical(f.result.kind, o.result[i][c]);

		h = hash(&v, sizeof(v), h);
	}
	return h;
}

/* A form's line of the record, behind its name. */
static std::string recorded(const form &f, const outcome &o)
{
	static const char letters[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
	std::string line;
	char word[24];
	uint64_t all = 1;

	if (o.refused)
		return "refused";
	for (int c = 0; c < CASES; c++) {
		uint64_t h = case_hash(f, o, c);

		if (is_approximate(f)) {
			snprintf(word, sizeof(word), "%s%llx", c ? " " : "",
				(unsigned long long)o.result[0][c]);
			line += word;
		} else {
			line += letters[h & 63];
			all = hash(&h, sizeof(h), all);
		}
	}
	if (is_approximate(f))
		return line;
	snprintf(word, sizeof(word), "%08x ", (unsigned)all);
	return word + line;
}

static void show_case(const form &f, const outcome &o, int c)
{
	int slot = 0;

	printf("  case %d:", c);
	for (const operand &in : f.inputs)
		for (int i = 0; i < (in.count ? in.count : 1); i++)
			printf(" %llx", (unsigned long long)o.input[slot++][c]);
	printf(" ->");
	for (int i = 0; i < (f.result.count ? f.result.count : 1); i++)
		printf(" %llx", (unsigned long long)o.result[i][c]);
	putchar('\n');
}

/* How many cases differ from the record's; the first of them are shown. */
static int compare(const form &f, const outcome &o, const std::string &want)
{
	std::string got = recorded(f, o);
	int wrong = 0;
	char *p = (char *)want.c_str();

	if (got == want)
		return 0;
	if (want == "refused" || o.refused) {
		printf("%s: %s\n", f.name.c_str(),
			o.refused ? "refused here" : "refused there");
		return 1;
	}
	for (int c = 0; c < CASES; c++) {
		bool same = is_approximate(f) ? is_near(f, o.result[0][c], strtoull(p, &p, 16))
					      : got[9 + c] == want[9 + c];

		if (same)
			continue;
		if (!wrong++)
			printf("%s:\n", f.name.c_str());
		if (wrong <= 3)
			show_case(f, o, c);
	}
	if (!wrong && !is_approximate(f))
		printf("%s: one of the cases, by the sum of all\n", f.name.c_str());
	return is_approximate(f) ? wrong : wrong + !wrong;
}

static int against(
	const std::vector<form> &forms, const std::vector<outcome> &out, FILE *record)
{
	static char line[4096];
	int wrong = 0, compared = 0, cases = 0;
	size_t at = 0;

	while (fgets(line, sizeof(line), record)) {
		char *bar = strchr(line, '|');

		line[strcspn(line, "\n")] = 0;
		if (!bar)
			FAIL("the record has '%.60s'", line);
		*bar = 0;
		while (at < forms.size() && forms[at].name != line)
			at++;
		if (at == forms.size())
			FAIL("the record has %s, which is no form here, or not in this order",
				line);
		int differ = compare(forms[at], out[at], bar + 1);

		cases += differ;
		wrong += differ != 0;
		compared++;
	}
	if (wrong || !compared)
		FAIL("%d of %d forms differ, in %d cases", wrong, compared, cases);
	printf("%d forms with %d cases each are as recorded\n", compared, CASES);
	return 0;
}

int main(int argc, char **argv)
{
	std::string what = argc > 1 ? argv[1] : "";
	std::vector<form> forms = all_forms();

	if (what == "--text") {
		fputs(module_text(forms, 0, forms.size()).c_str(), stdout);
		return 0;
	}
	if (what.empty())
		SKIP("no record of a device: run it with --record there, and --against here");
	if (what == "--show" && argc > 2)
		for (size_t i = forms.size(); i-- > 0;)
			if (forms[i].name != argv[2])
				forms.erase(forms.begin() + (long)i);

	std::vector<outcome> out(forms.size());

	CUDA(cudaMalloc(&device_input, BATCH * sizeof(out[0].input)));
	CUDA(cudaMalloc(&device_result, BATCH * sizeof(out[0].result)));
	for (size_t at = 0; at < forms.size(); at += BATCH)
		run(forms, at, forms.size() - at < BATCH ? forms.size() - at : BATCH, &out[at]);
	if (what == "--against" && argc > 2) {
		FILE *record = fopen(argv[2], "r");

		if (!record)
			FAIL("%s: %s", argv[2], strerror(errno));
		return against(forms, out, record);
	}
	for (size_t i = 0; i < forms.size(); i++) {
		if (what == "--record")
			printf("%s|%s\n", forms[i].name.c_str(),
				recorded(forms[i], out[i]).c_str());
		else if (out[i].refused)
			printf("%s is refused\n", forms[i].name.c_str());
		else
			for (int c = 0; c < CASES; c++)
				show_case(forms[i], out[i], c);
	}
	return 0;
}
