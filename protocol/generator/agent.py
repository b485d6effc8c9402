# SPDX-License-Identifier: Apache-2.0
"""The agent's side: the driver's function pointers, serve functions and the table by opcode."""
from . import text
from .api import ApiError
from .shim import HEADER_VERSION
from .wire import crossing, on_the_wire, reply_fields, request_fields


def offered(api):
    """The driver's functions that serve functions may use.  Left out: names that cuda.h turns into
    a newer version by macro, and what the header does not know."""
    entries = api.of("cuda")
    renamed = {e.name.rsplit("_v", 1)[0] for e in entries if e.name[-3:-1] == "_v"}
    return [e for e in entries
            if e.name not in renamed and not e.has("old") and e.since <= HEADER_VERSION]


def driver_header(api):
    out = text.head(
        "The driver's functions by name, NVIDIA's or the software GPU's, opened at run time.",
        "VCUDA_PROTOCOL_GENERATED_CUDA_DRIVER_H", ["<cuda.h>", "", '"common/error.h"'])
    out += "\nstruct cuda_driver {\n\tvoid *library;\n"
    for e in offered(api):
        out += text.wrap(f"\tCUresult (*{e.name})(", text.parameters(e), ");", "\t\t\t") + "\n"
    out += "};\n\n"
    out += "/* Opens LIBRARY with dlopen and fills in what it exports; a function that it lacks is\n"
    out += " * NULL.  0, or -errno with *error naming the library or the symbol that is missing. */\n"
    out += text.prototype("int", "cuda_driver_open", ["struct cuda_driver *d",
                                                      "const char *library", "struct error *error"])
    return out + "\n\n#endif\n"


def driver_source(api):
    out = text.head("Opens a libcuda.", None,
                    ["<dlfcn.h>", "<errno.h>", "<stddef.h>", "<string.h>", "",
                     '"protocol/generated/cuda_driver.h"'])
    out += "\nstatic const struct {\n\tconst char *name;\n\tsize_t offset;\n} functions[] = {\n"
    for e in offered(api):
        out += text.wrap("\t{", [f'"{e.name}"', f"offsetof(struct cuda_driver, {e.name})"], "},",
                         "\t ") + "\n"
    out += "};\n\n"
    out += text.prototype("int", "cuda_driver_open",
                          ["struct cuda_driver *d", "const char *library", "struct error *error"], "")
    return out + """
{
	memset(d, 0, sizeof(*d));
	d->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!d->library)
		return error_set(error, ENOENT, "open %s: %s", library, dlerror());

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *symbol = dlsym(d->library, functions[i].name);

		memcpy((char *)d + functions[i].offset, &symbol, sizeof(symbol));
	}
	if (!d->cuInit) {
		dlclose(d->library);
		d->library = NULL;
		return error_set(error, ENOSYS, "%s is no CUDA driver: it exports no cuInit", library);
	}
	return 0;
}
"""


def serve_locals(api, entry):
    """(declarations, arguments, copies back) of a serve function."""
    lines, args, back = [], [], []
    for p in entry.params:
        n, kind = p.name, api.types.get(p.base)
        if p.mark in ("new", "gone"):
            raise ApiError(f"{entry.origin}: {entry.name}: {p.mark} needs hand(agent)")
        if p.mark == "host":
            args.append("NULL")
        elif p.mark == "str":
            lines.append(f"const char *{n} = worker_string(r, &body->{n});")
            args.append(n)
        elif p.mark == "in" and p.size:
            size = on_the_wire(entry, p.size)
            if p.base not in ("void", "char", "uint8_t"):
                size = f"serve_bytes({size}, sizeof({p.base}))"
            lines.append(text.wrap(f"const {p.base} *{n} = worker_in(", ["r", f"&body->{n}", size],
                                   ");", "\t\t"))
            args.append(n if "const" in p.type else f"({p.base} *){n}")
        elif p.mark == "out" and p.size:
            size = on_the_wire(entry, p.size)
            if p.base not in ("void", "char", "uint8_t"):
                size = f"serve_bytes({size}, sizeof({p.base}))"
            lines.append(f"{p.base} *{n} = worker_out(r, &answer->{n}, {size});")
            args.append(n)
        elif p.mark in ("in", "inout", "out", "out?"):
            if kind.wire == "struct" and p.mark == "in":
                lines.append(f"{p.base} {n} = body->{n};")
            else:
                zero = "{0}" if kind.wire in ("struct", "bytes") else "0"
                lines.append(f"{p.base} {n} = {zero};")
                if p.mark == "out" or p.mark == "out?":
                    pass
                elif kind.wire == "bytes":
                    back.append(("before", f"memcpy(&{n}, body->{n}, sizeof({n}));"))
                else:
                    lines[-1] = f"{p.base} {n} = body->{n};"
            args.append(f"&{n}")
            if p.mark != "in":
                if kind.wire == "bytes":
                    back.append(("after", f"memcpy(answer->{n}, &{n}, sizeof(answer->{n}));"))
                elif kind.wire == "enum":
                    back.append(("after", f"answer->{n} = (uint32_t){n};"))
                else:
                    back.append(("after", f"answer->{n} = {n};"))
        elif p.mark == "device":
            size = on_the_wire(entry, p.size) if p.size else ""
            if size:
                lines.append(f"CUdeviceptr {n} = worker_range(w, r, body->{n}, {size});")
                args.append(f"(void *){n}" if p.stars else n)
            else:
                args.append(f"(void *)body->{n}" if p.stars else f"body->{n}")
        elif kind.wire == "stream":
            lines.append(f"CUstream {n} = worker_stream(w, r, body->{n});")
            args.append(n)
        elif kind.wire in ("function", "handle"):
            what = kind.kind or "KIND_CUfunction"
            lines.append(f"{p.base} {n} = worker_handle(w, r, body->{n}, {what});")
            args.append(n)
        elif kind.wire == "enum":
            args.append(f"({p.base})body->{n}")
        elif kind.wire == "u32" and p.base in ("unsigned char", "unsigned short"):
            args.append(f"({p.base})body->{n}")
        else:
            args.append(f"body->{n}")
    return lines, args, back


def serve_one(api, entry):
    lines, args, back = serve_locals(api, entry)
    out = f"/* {entry.origin}: {entry.verb} */\n"
    out += text.prototype("static CUresult", f"run_{entry.name}",
                          ["struct worker *w", "struct request *r"], "\n{\n")
    if request_fields(api, entry):
        out += f"\tconst struct wire_{entry.name} *body = (const void *)r->body;\n"
    if reply_fields(api, entry):
        out += f"\tstruct wire_{entry.name}_reply *answer = (void *)r->answer;\n"
    out += "\tconst struct cuda_driver *cuda = worker_driver(w);\n"
    out += "".join(f"\t{line}\n" for line in lines)
    after = [line for when, line in back if when == "after"]
    if after:
        out += "\tCUresult status;\n"
    out += "\n\tif (worker_refused(r))\n\t\treturn r->refused;\n"
    out += f'\tif (!cuda->{entry.name})\n\t\treturn worker_lacks(w, "{entry.name}");\n'
    out += "".join(f"\t{line}\n" for when, line in back if when == "before")
    if after:
        out += text.wrap(f"\tstatus = cuda->{entry.name}(", args, ");", "\t\t\t") + "\n"
        brace = len(after) > 1
        out += "\tif (!status)" + (" {\n" if brace else "\n")
        out += "".join(f"\t\t{line}\n" for line in after) + ("\t}\n" if brace else "")
        out += "\treturn status;\n}\n\n"
    else:
        out += text.wrap(f"\treturn cuda->{entry.name}(", args, ");", "\t\t\t") + "\n}\n\n"
    return out


def flags(entry):
    out = []
    if entry.has("payload"):
        out.append("SERVE_PAYLOAD")
    # A cached or learned call is posted or awaited as the shim sees fit; strict mode awaits all.
    if entry.verb in ("post", "both", "learned"):
        out.append("SERVE_POST")
    out.append("SERVE_CALL")
    if entry.has("no_context"):
        out.append("SERVE_NO_CONTEXT")
    return " | ".join(out)


def serve_source(api):
    out = text.head(
        "Serve functions: what the worker does with a frame.  Each finds what the frame names,\n"
        "refuses once if anything was a lie, and calls the driver.  serve_vcuda… stand in\n"
        "gpu-agent/, written by hand.", None,
        ["<string.h>", "", '"gpu-agent/worker.h"'] +
        [f'"protocol/generated/{n}.h"' for n in ("cuda_driver", "cuda_ops", "cuda_wire",
                                                "vcuda_ops", "vcuda_wire")])
    out += """
/* COUNT elements of EACH bytes; a product that does not fit is more than any body holds. */
static inline uint64_t serve_bytes(uint64_t count, uint64_t each)
{
	uint64_t bytes;

	return __builtin_mul_overflow(count, each, &bytes) ? UINT64_MAX : bytes;
}

"""
    every = [e for family in ("vcuda", "cuda") for e in crossing(api, family)]
    for e in every:
        if e.hand("agent"):
            out += text.prototype("CUresult", f"serve_{e.name}",
                                  ["struct worker *w", "struct request *r"]) + "\n"
    out += "\n" + "".join(serve_one(api, e) for e in every if not e.hand("agent"))
    out += "static const struct serve_entry entries[] = {\n"
    for e in every:
        half = "serve" if e.hand("agent") else "run"
        reply = f"sizeof(struct wire_{e.name}_reply)" if reply_fields(api, e) else "0"
        out += text.wrap("\t{", [f"OP_{e.name}", f"sizeof(struct wire_{e.name})", reply, flags(e),
                                 f"{half}_{e.name}", f'"{e.name}"'], "},", "\t ") + "\n"
    return out + """};

/* The table is sorted by opcode. */
const struct serve_entry *serve_find(uint16_t op)
{
	size_t low = 0;
	size_t high = sizeof(entries) / sizeof(entries[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (entries[middle].op == op)
			return &entries[middle];
		if (entries[middle].op < op)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
"""


def fuzz_dictionary(api):
    """Opcodes, and header fields with the right sizes, for the frame fuzzer."""
    out = "# Generated from protocol/*.api by protocol/generate.py: opcodes for the frame fuzzer.\n"
    out += 'magic="\\xa1\\xcd"\n'
    for family in ("vcuda", "cuda"):
        for e in crossing(api, family):
            fields = request_fields(api, e)
            from .wire import padded
            size = padded(fields)[1] if fields else 8
            length = "".join(f"\\x{b:02x}" for b in size.to_bytes(4, "little"))
            op = "".join(f"\\x{b:02x}" for b in e.op.to_bytes(2, "little"))
            kind = "\\x01" if e.verb == "post" else "\\x02"
            out += f'{e.name}="{length}{op}{kind}\\x00"\n'
    return out
