# SPDX-License-Identifier: Apache-2.0
"""The table behind cuGetProcAddress: name without version -> who answers since which CUDA."""
from . import text


def twin_since(entry):
    """The CUDA version that brought the per-thread form: ptsz(7000)."""
    value = entry.options.get("ptsz") or entry.options.get("ptds")
    return int(value) if value else entry.since


def header(_api):
    out = text.head("Which function answers for a name, by the CUDA version that the app asks for.",
                    "VCUDA_PROTOCOL_GENERATED_CUDA_PROCS_H", [])
    return out + """
struct cuda_proc_version {
	int since; /* e.g. 12050; the newest that is not newer than asked for wins */
	int per_thread_since;
	void *function;
	void *per_thread; /* NULL: the call has no per-thread form, use `function` */
};

struct cuda_proc {
	const char *name; /* without _v2 */
	unsigned count;
	const struct cuda_proc_version *versions; /* oldest first */
};

/* NULL where no entry has that name. */
const struct cuda_proc *cuda_proc_find(const char *name);

#endif
"""


def source(api):
    out = text.head("cuGetProcAddress: names, versions, functions; sorted by name.", None, [])
    out += "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <string.h>\n\n"
    out += f'#include {text.includes("cuda_procs.h")[0]}\n\n'
    out += "/* The stubs under names that only this library has; see cuda_stubs.c. */\n"
    out += "#define VCUDA_LOCAL(name) \\\n\textern __typeof__(name) local_##name "
    out += '__attribute__((visibility("hidden")))\n\n'
    groups = {}
    for e in api.of("cuda"):
        groups.setdefault(e.base, []).append(e)
        for name in (e.name, e.name + e.twin) if e.twin else (e.name,):
            if not e.declared():
                out += f"CUresult {name}(void);\n"
            out += f"VCUDA_LOCAL({name});\n"
    out += "\n"
    for base in sorted(groups):
        out += text.wrap("static const struct cuda_proc_version", [f"{base}_versions[] ="], " {",
                         "\t") + "\n"
        for e in sorted(groups[base], key=lambda e: (e.since, e.name)):
            twin = f"(void *)local_{e.name}{e.twin}" if e.twin else "NULL"
            out += text.wrap("\t{", [str(e.since), str(twin_since(e)) if e.twin else "0",
                                     f"(void *)local_{e.name}", twin], "},", "\t ") + "\n"
        out += "};\n"
    out += "\nstatic const struct cuda_proc procs[] = {\n"
    for base in sorted(groups):
        out += text.wrap("\t{", [f'"{base}"', str(len(groups[base])), f"{base}_versions"], "},",
                         "\t ") + "\n"
    return out + """};

const struct cuda_proc *cuda_proc_find(const char *name)
{
	size_t low = 0;
	size_t high = sizeof(procs) / sizeof(procs[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(procs[middle].name, name);

		if (!order)
			return &procs[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
"""
