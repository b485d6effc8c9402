# SPDX-License-Identifier: Apache-2.0
"""The constants and structs that our headers write out, against NVIDIA's: an enumerator of an enum
without a name is NVIDIA's and has its number; a #define or a typedef'd struct that NVIDIA has too
says the same.  Enums with a name are our own."""
import re


def raw(path):
    """A header without comments and directives."""
    return re.sub(r"^\s*#.*$", "", commentless(path), flags=re.M)


def commentless(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def number(value, known):
    value = re.sub(r"\b(0[xX][\da-fA-F]+|\d[\d.]*)[uUlL]+\b", r"\1", " ".join(value.split()))
    return eval(re.sub(r"\b[A-Za-z_]\w*", lambda m: str(known[m.group(0)]), value),
                {"__builtins__": {}})


def enumerators(text, kind=r"\w*"):
    """{name: value} of every enum whose name matches KIND."""
    found = {}
    for body in re.findall(rf"\benum\s*{kind}\s*\{{([^}}]*)\}}", text):
        value = -1
        for item in filter(None, (i.strip() for i in body.split(","))):
            name, _, given = item.partition("=")
            try:
                value = number(given, found) if given else value + 1
            except KeyError:  # by a name that is no enumerator: none of ours is
                continue
            found[name.strip().split()[0]] = value
    return found


def defines(path):
    """{name: number} of the #defines that are plain numbers."""
    found = {}
    for name, value in re.findall(r"^\s*#\s*define\s+(\w+)[ \t]+(\S[^\n]*)$", commentless(path), re.M):
        value = value.strip().strip("()")
        if re.fullmatch(r"-?(0[xX][\da-fA-F]+|\d[\d.]*(e-?\d+)?)[uUlL]*", value):
            found[name] = number(value, {})
    return found


def structs(text):
    """{name: members} of every typedef'd struct that is written out."""
    return {name: " ".join(re.sub(r"\s*([\[\];*])\s*", r"\1", body).split())
            for body, name in re.findall(r"typedef\s+struct\s*\w*\s*\{([^{}]*)\}\s*(\w+)\s*;", text)}


def merged(paths, read):
    found = {}
    for path in paths:
        found.update(read(path))
    return found


def differences(ours, theirs, skip=r"(?!)"):
    """OURS: our headers; THEIRS: {major: NVIDIA's}.  A number may be in one major only, but means
    the same in both; a struct that is words and nothing else is as long as the longest of theirs."""
    out = []
    mine = enumerators("".join(map(raw, ours)), "")
    known = {major: enumerators("".join(map(raw, paths))) for major, paths in theirs.items()}
    for name, value in mine.items():
        if re.match(skip, name):
            continue
        values = {major: k[name] for major, k in known.items() if name in k}
        if not values:
            out.append(f"{name}: in no header of NVIDIA's")
        out += [f"{name} is {v} in {major}, ours {value}" for major, v in values.items() if v != value]
    words = re.compile(r"uint64_t data\[(\d+)\];")
    for what, read in (("", defines), ("struct ", lambda path: structs(raw(path)))):
        mine = merged(ours, read)
        read_of = {major: merged(paths, read) for major, paths in theirs.items()}
        for name in mine:
            lengths = [int(found[1]) for other in read_of.values()
                       if (found := words.fullmatch(str(other.get(name, ""))))]
            if lengths and mine[name] == f"uint64_t data[{max(lengths)}];":
                for other in read_of.values():
                    other.pop(name, None)
        for major, other in read_of.items():
            out += [f"{what}{name} is {other[name]} in {major}, ours {mine[name]}"
                    for name in sorted(set(mine) & set(other)) if mine[name] != other[name]]
    return out
