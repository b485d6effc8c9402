# SPDX-License-Identifier: Apache-2.0
"""docs/COVERAGE.md: what is served, function by function."""
from . import forms, unserved
from .api import VERBS, abis

TITLES = {"cuda": "libcuda.so.1: the driver API (cuda.h)",
          "cudart": "libcudart.so.12 and libcudart.so.13: the runtime API (cuda_runtime_api.h)"}


# The reason of what a library exports and nothing declares.
UNDECLARED = "no header of NVIDIA declares it"


def titles(api):
    """{family: title of its section}"""
    out = dict(TITLES)
    for family, one in api.libraries.items():
        names = " and ".join(name for _, name in one.sonames)
        out[family] = f"{names}: {one.name} ({one.header})"
    return out


def row(entry):
    notes = [entry.reason] if entry.reason else []
    if entry.since > 13000:
        notes.append(f"CUDA {entry.since // 1000}.{entry.since % 1000 // 10}")
    if len(abis(entry)) < len(entry.majors):
        what = "CUDA" if 12 in entry.majors else entry.library.name
        notes.append(f"{what} {abis(entry)[0]} only")
    if entry.has("answers"):
        notes.append(f"{entry.options['answers']} whatever it is given")
    if entry.has("same"):
        notes.append(f"as {entry.options['same']}")
    if entry.has("wide"):
        notes.append("and its `_64` form")
    name = f"`{entry.name}`" + (f" `{entry.twin}`" if entry.twin else "")
    return f"| {name} | {entry.verb} | {'; '.join(notes)} |\n"


def counted(title, entries):
    """A row of the first table."""
    counts = {v: sum(e.verb == v for e in entries) for v in VERBS}
    out = f"| {title} | {len(entries)} | {len(entries) - counts['refused']} | "
    return out + " | ".join(str(counts[v]) for v in VERBS if v != "both") + " |\n"


def coverage(api):
    sections = titles(api)
    out = "# What is served\n\n"
    out += "Generated from `protocol/api/*.api` by `make generate`; the verbs are explained in\n"
    out += "[protocol/README.md](../protocol/README.md). A name that is `refused` is exported and\n"
    out += "answers NOT_SUPPORTED. A suffix beside a name is its per-thread-stream form.\n\n"
    out += "| library | functions | served | " + " | ".join(v for v in VERBS if v != "both") + " |\n"
    out += "|---|---|---|" + "---|" * (len(VERBS) - 1) + "\n"
    undeclared = []
    for family in sections:
        undeclared += [e for e in api.of(family) if e.reason == UNDECLARED]
        out += counted(sections[family].split(":")[0], [e for e in api.of(family) if e.reason != UNDECLARED])
    out += counted("exported by these, declared in no header", undeclared)
    out += "\nVersions and per-thread forms: a per-thread form is counted with its function.\n"
    out += "{} of {} that are served have generated bodies in the shim (`protocol/generate.py\n" \
        "--count`); the others are written by hand.\n".format(*forms.counts(api, sections))
    for family in sections:
        entries = api.of(family)
        reasons = {}
        for e in entries:
            if e.reason:
                reasons[e.reason] = reasons.get(e.reason, 0) + 1
        out += f"\n## {sections[family]}\n\n"
        out += "Refused, by reason:\n\n"
        for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0])):
            out += f"- {reason} ({count})\n"
        fixed = sum(e.has("answers") for e in entries)
        if fixed:
            out += f"\nOf those that are served, {fixed} answer one status whatever they are given: what they\n"
            out += "take comes of a function that is refused, or of a CUDA that no context is of any more.\n"
        out += "\n| function | verb | notes |\n|---|---|---|\n"
        out += "".join(row(e) for e in entries)
    return out + without_a_front(api)


def without_a_front(api):
    out = "\n## Libraries without a front\n\n"
    out += "Exported, so that what is linked with them loads; the first call says on stderr that\n"
    out += "vcuda has no front for the library yet, and every call answers its own status. Versions\n"
    out += "and properties are answered; variables are there and hold zeros. The names: `unserved` and `names` in `protocol/api/`.\n\n"
    out += "| library | functions | every call answers |\n|---|---|---|\n"
    for one, soname in unserved.sonames(api):
        out += f"| {soname.name} | {len(one.names(soname))} | {one.word} |\n"
    for one in api.unserved.values():
        if one.served:
            out += f"\nOf {one.stem}, whose other functions `{one.served}` serves, {len(one.kinds)} answer {one.word}.\n"
    return out
