// SPDX-License-Identifier: Apache-2.0
/*
 * One call: its arguments are drawn, printed, and compared with what they hold afterwards.
 */
#pragma once

#include "names.h"

struct function;

struct Argument {
	enum { VALUE, BUFFER_IN, BUFFER_OUT, MADE, TEXT_OUT, STRUCT } kind = VALUE;
	uint64_t bits = 0;
	std::string shown;
	unsigned char *buffer = NULL, *before = NULL;
	size_t size = 0, unit = 8;
	handle_class made = CLASSES;
	bool quiet = false; /* what is in it is not told */
};

template <typename T> T to(Argument *argument)
{
	if constexpr (std::is_pointer_v<T>)
		return (T)argument->bits;
	else if constexpr (std::is_class_v<T>)
		return *(T *)argument->buffer;
	else if constexpr (std::is_same_v<T, float>)
		return (float)(long long)argument->bits / 4;
	else
		return (T)argument->bits;
}
template <typename T> T to(std::nullptr_t)
{
	return (T)NULL;
}
template <typename T> T to(long)
{
	return (T)0;
}

struct Call {
	const char *name;
	void *function;
	uint64_t random;
	int thread;
	std::vector<Argument *> arguments;
	struct slot *given = NULL; /* the last handle or address that was drawn */
	std::function<void(unsigned)> after = NULL; /* tells more of what was answered */

	uint64_t draw(uint64_t below)
	{
		return mix(&random) % below;
	}
	bool one_in(uint64_t n)
	{
		return draw(n) == 0;
	}
	bool is(const char *part)
	{
		return strstr(name, part) != NULL;
	}

	Argument *add(uint64_t bits, const std::string &shown)
	{
		Argument *argument = new Argument;

		argument->bits = bits;
		argument->shown = shown;
		arguments.push_back(argument);
		return argument;
	}
	Argument *buffer(decltype(Argument::kind) kind, size_t size, int fill)
	{
		Argument *argument = add(0, "");

		argument->kind = kind;
		argument->size = size;
		/* A tensor map lies at a multiple of 64. */
		argument->buffer = (unsigned char *)aligned_alloc(64, BUFFER);
		argument->before = (unsigned char *)malloc(size);
		memset(argument->buffer, fill, BUFFER);
		argument->bits = (uint64_t)argument->buffer;
		return argument;
	}

	struct slot *slot_of(handle_class kind)
	{
		struct slot *slot = &slots[kind][draw(SLOTS)];
		/* An address that is free may be anything's by now. */
		bool stale = one_in(3000) && kind < CLASS_pinned;

		for (int i = 0; i < SLOTS && !slot->live && !stale; i++)
			slot = &slots[kind][(slot - slots[kind] + 1) % SLOTS];
		return slot->live || (stale && slot->value) ? slot : NULL;
	}
	uint64_t handle_bits(handle_class kind, std::string *shown)
	{
		uint64_t dice = draw(40);
		struct slot *slot = kind == CLASS_node ? node_slot() : slot_of(kind);

		if (kind == CLASS_graph && (is("Add") || is("ToGraph")) && one_in(5)) {
			struct slot *body = slot_of(CLASS_body);

			slot = body ? body : slot;
			kind = body ? CLASS_body : kind;
		}

		if (kind == CLASS_stream && dice >= 5 && dice < 14) {
			uint64_t special = dice < 8 ? 0 : dice < 11 ? 1 : 2;

			*shown = std::to_string(special);
			return special;
		}
		if (dice < 2 || !slot) {
			*shown = "0";
			return 0;
		}
		given = slot;
		*shown = name_new(kind, slot->value);
		return slot->value;
	}
	Argument *handle(handle_class kind)
	{
		std::string shown;
		uint64_t bits = handle_bits(kind, &shown);

		return add(bits, shown);
	}
	Argument *handles(handle_class kind)
	{
		Argument *argument = buffer(Argument::BUFFER_IN, 64, 0);
		std::string all = "{", shown;

		for (int i = 0; i < 8; i++) {
			((uint64_t *)argument->buffer)[i] = handle_bits(kind, &shown);
			all += (i ? "," : "") + shown;
		}
		argument->shown = all + "}";
		if (one_in(8))
			argument->bits = 0, argument->shown = "0";
		return argument;
	}
	uint64_t device_bits(std::string *shown)
	{
		/* Beyond the end of an allocation NVIDIA's driver takes an address for one of
		 * the host. */
		static const uint64_t offsets[] = {
			0, 0, 0, 0, 0, 0, 0, 4, 4, 256, 256, 1, 1, 4096, 4096, 65536, 65532};
		struct slot *slot = slot_of(CLASS_memory);
		struct slot *managed = slot_of(CLASS_managed);
		const bool other = managed && one_in(8);
		uint64_t offset = offsets[draw(COUNT(offsets))], dice = draw(30);

		if (!slot || dice == 0) {
			*shown = "0";
			return 0;
		}
		slot = other ? managed : slot;
		given = slot;
		if (slot->variable && offset > 4)
			offset = 0;
		*shown = name_new(other ? CLASS_managed : CLASS_memory, slot->value) +
			 (offset ? "+" + std::to_string(offset) : "");
		return slot->value + offset;
	}
	Argument *device()
	{
		std::string shown;
		uint64_t bits = device_bits(&shown);

		return add(bits, shown);
	}
	Argument *host()
	{
		uint64_t offset = draw(4) * 65536 + (one_in(4) ? draw(9) : 0);

		if (one_in(20))
			return add(0, "0");
		return add((uint64_t)host_pool + offset, "host+" + std::to_string(offset));
	}
	Argument *any()
	{
		return one_in(2) ? host() : device();
	}

	uint64_t number_bits(const char *what, size_t width)
	{
		static const uint64_t sizes[] = {
			0, 1, 3, 4, 16, 64, 100, 512, 4096, 65536, 65537, 1 << 20};
		static const uint64_t huge[] = {0, 1, 4, 512, 4096, 65536, 1 << 20, 2 << 20,
			64 << 20, 1ull << 40, ~0ull};
		static const uint64_t flags[] = {0, 0, 0, 1, 2, 3, 4, 6, 8, 16, 0xffffffff};
		static const uint64_t shape[] = {0, 1, 4, 16, 64, 256, 512};
		static const uint64_t grid[] = {0, 1, 1, 1, 2, 32, 64, 1024, 1025, 65536};
		static const uint64_t small[] = {0, 1, 1, 2, 3};
		static const uint64_t other[] = {0, 1, 2, 3, 7, 32, ~0ull};
		static const uint64_t devices[] = {0, 0, 0, 0, 0, 0, 1, ~0ull, 99};
#define ONE(list) list[draw(COUNT(list))]
		bool copies = is("Memcpy") || is("Memset") || is("memcpy") || is("memset");

		if (strcasestr(what, "num") || (!strcmp(what, "count") && !copies))
			return ONE(small);
		if (!strcmp(what, "dev") || strstr(what, "evice") || !strcmp(what, "ordinal"))
			return ONE(devices);
		if (strstr(what, "lags"))
			return ONE(flags);
		if (strstr(what, "grid") || strstr(what, "block"))
			return ONE(grid);
		if (strstr(what, "itch") || strstr(what, "idth") || strstr(what, "eight") ||
			strstr(what, "Offset"))
			return ONE(shape);
		if (is("Alloc") || is("Reserve") || is("Create") || is("Malloc") || is("Limit"))
			return is("Limit") ? ONE(sizes) : ONE(huge);
		if (width == 8 || copies || strstr(what, "ize") || strstr(what, "ytes"))
			return ONE(sizes);
		if (width < 4)
			return draw(256);
		return ONE(other);
	}
	Argument *number(const char *what, size_t width)
	{
		uint64_t bits = number_bits(what, width);

		return add(bits, bits == ~0ull ? "-1" : std::to_string(bits));
	}
	Argument *choice(const long long *list, size_t count)
	{
		uint64_t dice = draw(25);
		/* NVIDIA's driver looks a negative attribute of a function up. */
		long long value = dice == 0   ? (is("Attribute") ? 200 : -1)
				  : dice == 1 ? 4711
					      : list[draw(count)];

		return add((uint64_t)value, std::to_string(value));
	}
	Argument *real()
	{
		return add(draw(9), "real");
	}
	Argument *text()
	{
		static const char *const texts[] = {
			"nothing", "count", "number", "fixed", "nosuch", ""};
		const char *text = texts[draw(COUNT(texts))];

		if (one_in(20))
			return add(0, "0");
		return add((uint64_t)text, std::string("\"") + text + "\"");
	}
	Argument *kernel()
	{
		uint64_t dice = draw(8);

		return dice ? add(dice < 5 ? (uint64_t)(void *)add_one
					   : (uint64_t)(void *)add_shared,
				      dice < 5 ? "add_one" : "add_shared")
			    : add(0, "0");
	}
	Argument *maybe(Argument *argument)
	{
		/* Where NVIDIA's own libraries do not look whether there is an address. */
		static const char *const trusting[] = {"Attribute", "GetDevice", "SetParams",
			"ExchangeStream", "GetLoadingMode", "Occupancy", "GetName", "Params",
			"Access", "Green", "Resource", "Batch", "Link", "ChooseDevice", "Ipc",
			"AddNode", "MemRange", "CaptureInfo", "UserObjectCreate", "Shareable",
			"Pointer", "Requirements"};

		for (const char *part : trusting)
			if (is(part))
				return argument;
		if (one_in(24))
			argument->bits = 0, argument->shown = "0";
		return argument;
	}
	Argument *zeros()
	{
		return maybe(buffer(Argument::STRUCT, 64, 0));
	}
	Argument *made(handle_class kind)
	{
		Argument *argument = buffer(Argument::MADE, 64, 0xa5);

		argument->made = kind;
		return maybe(argument);
	}
	Argument *output(size_t unit)
	{
		Argument *argument = buffer(Argument::BUFFER_OUT, 1024, 0xa5);

		argument->unit = unit;
		return maybe(argument);
	}
	/* Read and written, or only the one. */
	Argument *inout(const char *what, size_t unit)
	{
		Argument *argument = output(unit);
		uint64_t value = number_bits(what, unit);

		if (unit == 4)
			((uint32_t *)argument->buffer)[0] = (uint32_t)value;
		else
			((uint64_t *)argument->buffer)[0] = value;
		return argument;
	}
	Argument *numbers()
	{
		Argument *argument = buffer(Argument::BUFFER_IN, 64, 0);

		for (int i = 0; i < 8; i++)
			((uint32_t *)argument->buffer)[i] = (uint32_t)draw(4);
		return maybe(argument);
	}
	Argument *text_out()
	{
		Argument *argument = buffer(Argument::TEXT_OUT, 8, 0xa5);

		return argument;
	}
	template <typename T> Argument *made_of()
	{
		Argument *argument = buffer(Argument::STRUCT, sizeof(T), 0);

		if (!one_in(16))
			make((T *)argument->buffer);
		return maybe(argument);
	}
	template <typename T> Argument *value()
	{
		Argument *argument = buffer(Argument::STRUCT, sizeof(T), 0);

		make((T *)argument->buffer);
		return argument;
	}

#include "structs.inc"
#include "nodes.inc"
#include "families.inc"

	/* ---- what came of it ---- */
	static void forget_class(handle_class kind)
	{
		for (struct slot &slot : slots[kind])
			slot.live = false;
		names[kind].clear();
	}
	static void forget_owned(uint64_t green)
	{
		for (auto &kind : slots)
			for (struct slot &slot : kind)
				if (slot.live && slot.owner == green) {
					slot.live = false;
					for (auto &known : names)
						known.erase(slot.value);
				}
	}
	/* What a driver may give again is a new thing then; and of what went with it nothing is
	 * drawn. */
	void forget(enum gone gone)
	{
		if (gone == GONE_NOTHING)
			return;
		if (gone == GONE_ALL)
			waited = 0;
		if (given) {
			/* Another slot may have the same: of what is gone nothing is drawn by
			 * chance. */
			for (auto &kind : slots)
				for (struct slot &slot : kind)
					if (slot.value == given->value)
						slot.live = false;
			for (auto &known : names)
				known.erase(given->value);
		}
		for (int kind = 0; kind < CLASSES; kind++) {
			const bool family = given >= slots[kind] && given < slots[kind] + SLOTS;

			if (gone == GONE_ALL && kind != CLASS_context)
				forget_class((handle_class)kind);
			if (gone != GONE_FAMILY || !family)
				continue;
			if (kind == CLASS_graph || kind == CLASS_node || kind == CLASS_body) {
				forget_class(CLASS_node);
				forget_class(CLASS_body);
				forget_class(CLASS_conditional);
			}
			if (kind == CLASS_green)
				forget_owned(given->value);
			if (kind == CLASS_mipmapped)
				forget_class(CLASS_array);
			if (kind == CLASS_pool)
				forget_class(CLASS_memory);
			if (kind == CLASS_module || kind == CLASS_library) {
				forget_class(CLASS_function);
				forget_class(CLASS_kernel);
				forget_class(CLASS_memory);
			}
		}
	}
	/* Before the call: its text, and what its buffers hold.  A call that ends the process
	 * leaves it. */
	void prepare()
	{
		fprintf(out, "T%d %s(", thread, name);
		for (size_t i = 0; i < arguments.size(); i++) {
			Argument *argument = arguments[i];

			if (argument->buffer)
				memcpy(argument->before, argument->buffer, argument->size);
			fputs(i ? ", " : "", out);
			if (!argument->shown.empty()) {
				fputs(argument->shown.c_str(), out);
			} else if (argument->kind == Argument::STRUCT) {
				fputc('{', out);
				for (size_t at = 0; at + 4 <= argument->size; at += 8) {
					uint64_t word = 0;

					memcpy(&word, argument->before + at,
						argument->size - at < 8 ? 4 : 8);
					fprintf(out, at ? " %s" : "%s",
						word_text(word).c_str());
				}
				fputc('}', out);
			} else {
				fputc('&', out);
			}
		}
		fputs(") = ", out);
		fflush(out);
	}
	static std::string changed(const Argument *argument)
	{
		const size_t unit = argument->unit;
		size_t last = 0;
		std::string text;

		for (size_t at = 0; at + unit <= argument->size; at += unit)
			if (memcmp(argument->buffer + at, argument->before + at, unit))
				last = at + unit;
		for (size_t at = 0; at < last; at += unit) {
			uint64_t word = 0;

			memcpy(&word, argument->buffer + at, unit);
			if (!memcmp(argument->buffer + at, argument->before + at, unit))
				text += " -";
			else
				text += " " + word_text(word);
		}
		return text;
	}
	void result(unsigned status, enum gone gone)
	{
		fprintf(out, "%u", status);
		for (Argument *argument : arguments) {
			if (argument->kind == Argument::MADE && argument->bits && status == 0 &&
				*(uint64_t *)argument->buffer != 0xa5a5a5a5a5a5a5a5u) {
				uint64_t value = *(uint64_t *)argument->buffer;
				struct slot *slot = &slots[argument->made][draw(SLOTS)];

				if (value > 2 || argument->made == CLASS_conditional) {
					const bool green = given >= slots[CLASS_green] &&
							   given < slots[CLASS_green] + SLOTS;

					fprintf(out, " -> %s",
						name_new(argument->made, value).c_str());
					*slot = {value, true, green ? given->value : 0,
						made_node(),
						is("Global") || is("GetManaged") ||
							is("Symbol")};
				} else {
					fprintf(out, " -> %llu", (unsigned long long)value);
				}
			} else if (argument->kind == Argument::TEXT_OUT) {
				const char *text = *(const char **)argument->buffer;

				if ((uint64_t)text != 0xa5a5a5a5a5a5a5a5u)
					fprintf(out, " -> \"%s\"", text ? text : "NULL");
			} else if (argument->buffer && argument->bits && !argument->quiet &&
				   argument->kind != Argument::BUFFER_IN) {
				std::string text = changed(argument);

				if (!text.empty())
					fprintf(out, " ->%s", text.c_str());
			}
		}
		if (after)
			after(status);
		fputc('\n', out);
		fflush(out);
		if (status == 0)
			forget(gone);
		for (Argument *argument : arguments) {
			free(argument->buffer);
			free(argument->before);
			delete argument;
		}
	}
};
