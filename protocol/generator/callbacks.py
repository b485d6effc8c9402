# SPDX-License-Identifier: Apache-2.0
"""A profiler's numbers of calls: of which call each is, and what each is called (the file of protocol/api that its stanza's
records(FILE) names)."""
import collections
import re

from . import text
from .api import abis
from .errors import ApiError
from .shim import exported

DOMAINS = {"driver": "cuda", "runtime": "cudart"}  # domain: family


def read(lines, file=""):
    """{domain: {number: {major: name}}} of the lines of that file."""
    out = {domain: {} for domain in DOMAINS}
    for at, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) not in (3, 4) or words[0] not in out or not words[1].isdigit():
            raise ApiError(f"{file}:{at}: not DOMAIN NUMBER NAME [NAME]")
        rows, number, older = out[words[0]], int(words[1]), words[-1]
        if number != len(rows) + 1:
            raise ApiError(f"{file}:{at}: {words[0]} {number}: the numbers have no gaps")
        rows[number] = {13: words[2], **({} if older == "-" else {12: older})}
    return out


def numbers(rows, domain, major):
    """{exported name: number} of a major: of a runtime function, whose name here ends in the version of CUDA that it
    came with, the newest."""
    found = collections.defaultdict(list)
    for number, names in rows[domain].items():
        match = re.fullmatch(r"(\w+?)(?:_v(\d{4,5}))?", names.get(major, ""))
        if match and domain == "runtime" and match[2]:
            found[match[1]].append((int(match[2]), number))
        elif match and domain == "driver":
            found[match[0]].append((0, number))
    return {name: max(of)[1] for name, of in found.items()}


def called(api, rows):
    """{(domain, number, major): exported name} of what is exported and has a number."""
    out = {}
    for domain, family in DOMAINS.items():
        by_major = {major: numbers(rows, domain, major) for major in (12, 13)}
        for e, name, _ in exported(api.of(family)):
            for major in abis(e) if family == "cudart" else by_major:
                if name in by_major[major]:
                    out[domain, by_major[major][name], major] = name
    return out


def files(api, one, lines):
    """{name: text} of a library that records: ONE, a Library, and its file's LINES."""
    rows = read(lines, one.records)
    calls = called(api, rows)
    out = text.head(
        f"What {one.name} calls the calls, in order of their numbers and without gaps: CALLED(NAME, MORE): those\n"
        f"of an exported function NAME, which {one.name} calls NAMEMORE; NAMED(NAME): of none.")
    out += "".join(f"\n#if VCUDA_ABI == {major}\n#define EITHER(of_12, of_13) of_{major}\n#endif" for major in (12, 13))
    for domain, of in rows.items():
        made = [row(names, calls, domain, number) for number, names in of.items()]
        newest = next((at for at, names in enumerate(of.values()) if 12 not in names), len(made))
        out += f"\n\n#ifdef CALLBACKS_{domain.upper()}\n" + packed(made[:newest])
        out += f"#if VCUDA_ABI == 13\n{packed(made[newest:])}#endif\n#endif"
    return {f"{one.family}_callbacks.inc": out + "\n\n#undef EITHER\n"}


def row(names, calls, domain, number):
    """The row of {major: name}."""
    made = {}
    for major, name in names.items():
        call = calls.get((domain, number, major))
        more = f", {name[len(call):]}" if call and name != call else ""
        made[major] = f"CALLED({call}{more})" if call else f"NAMED({name})"
    return made[13] if len(set(made.values())) == 1 else f"EITHER({made[12]}, {made[13]})"


def packed(rows):
    return "\n".join(text.packed(rows, "CALLED", "NAMED", "EITHER")) + "\n"
