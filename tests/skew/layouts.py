#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Under one number of the session protocol, releases work together: no call has changed its opcode or the layout of
what travels since the release before.

    tests/skew/layouts.py [COMMIT]     compares with COMMIT, or with what tests/skew/previous names
    tests/skew/layouts.py --self       the comparison itself, on descriptions with one fault each

Where the number differs, anything may.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GENERATED = "protocol/generated"
BY_HAND = "protocol/wire", "protocol/libraries"
# Members that have another name now: {struct: {before: now}}.
RENAMED = {"session_hello": {"memory_limit": "vram_limit"}, "part": {"old": "new"}}


def git(*words):
    got = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, timeout=60)
    return got.stdout if got.returncode == 0 else None


def texts_of(commit):
    """{path: text} of the files that say what travels, of a commit or of the working tree."""
    listed = git("ls-tree", "-r", "--name-only", commit, GENERATED, *BY_HAND) if commit else \
        git("ls-files", GENERATED, *BY_HAND)
    found = {}
    for path in listed.split():
        if not path.endswith((".h", ".inc")):
            continue
        if commit:
            found[path] = git("show", f"{commit}:{path}")
        elif os.path.exists(f"{ROOT}/{path}"):
            with open(f"{ROOT}/{path}") as file:
                found[path] = file.read()
    return found


SIZES = {"char": 1, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8}  # each aligned to itself


def without_unions(members):
    """A field with further names is laid out as the first alone, where none of them is larger or aligned to more."""
    def first(union):
        fields = re.findall(r"(\w+) \w+(?:\[(\d+)\])?;", union[1])
        if union[1].count(";") != len(fields) or any(kind not in SIZES for kind, _ in fields):
            return union[0]
        sizes = [(SIZES[kind] * int(count or 1), SIZES[kind]) for kind, count in fields]
        fits = all(size <= sizes[0][0] and align <= sizes[0][1] for size, align in sizes)
        return union[1].split(";")[0].strip() + ";" if fits else union[0]
    return re.sub(r"\bunion \{ ([^{}]*)\};", first, members)


def same_layout(before, now):
    """Word for word, but for what was reserved and has a name now."""
    ours, theirs = before.split(";"), now.split(";")
    return len(ours) == len(theirs) and all(
        a == b or a.split()[-1:] == ["reserved"] and a.split()[:-1] == b.split()[:-1] for a, b in zip(ours, theirs))


def description(texts):
    """The protocol's number, {opcode's name: number}, {struct that travels: its members}."""
    whole = "\n".join(re.sub(r"/\*.*?\*/", "", text, flags=re.S) for path, text in sorted(texts.items()))
    version = int(re.search(r"#define SESSION_VERSION (\d+)u", whole)[1])
    opcodes = {name: int(number) for name, number in re.findall(r"\bOP_(\w+) = (\d+)", whole)}
    opcodes.update((name, int(number)) for name, number in re.findall(r"\bSENT\((\w+), \w+, (\d+)\)", whole))
    every = {name: without_unions(" ".join(members.split())) for name, members in
             re.findall(r"^struct (\w+) \{\n(.*?)^\};", whole, re.M | re.S)}
    return version, opcodes, travelling(every)


def travelling(every):
    """Of all structs the frames', and those that these have for members."""
    found, left = {}, [name for name in every if re.match("wire_|session_|frame", name)]
    while left:
        name = left.pop()
        if name in every and name not in found:
            found[name] = every[name]
            left += re.findall(r"\bstruct (\w+) \w", every[name])
    return found


def faults(before, now):
    if before[0] != now[0]:
        return
    taken = {number: name for name, number in before[1].items()}
    for name, number in sorted(now[1].items()):
        if name in before[1] and before[1][name] != number:
            yield f"{name} was opcode {before[1][name]}, and is {number}"
        elif taken.get(number, name) not in (name, *now[1]):
            yield f"opcode {number} was {taken[number]}, and is {name}"
    for name, members in sorted(before[2].items()):
        renamed = members
        for old, new in RENAMED.get(name, {}).items():
            renamed = re.sub(rf"\b{old}(?=;|$)", new, renamed)
        there = now[2].get(name, members)
        if not same_layout(members, there) and not same_layout(renamed, there):
            yield f"struct {name} is laid out otherwise"


def check_self():
    base = {"a.h": "#define SESSION_VERSION 4u\nenum { OP_one = 7, };\nstruct wire_one {\n\tuint32_t a;\n\tstruct part p;\n\tuint32_t reserved;\n};\n"
            "struct part {\n\tuint32_t c;\n\tuint32_t old;\n\tuint32_t other;\n};\nstruct local {\n\tuint32_t d;\n};\n",
            "b.inc": "SENT(two, call, 9)\n"}
    before = description(base)
    for text, old, new, wanted in (
            ("a.h", "", "", 0), ("a.h", "OP_one = 7", "OP_one = 8", 1), ("a.h", "OP_one = 7", "OP_other = 7", 1),
            ("a.h", "uint32_t a", "uint64_t a", 1), ("b.inc", "9", "10", 1), ("a.h", "\ta;", "\ta; /* b */", 0),
            ("b.inc", "SENT", "SENT(three, post, 11)\nSENT", 0),
            ("a.h", "\tuint32_t a;", "\tunion {\n\t\tuint32_t a;\n\t\tuint32_t b;\n\t};", 0),
            ("a.h", "\tuint32_t a;", "\tunion {\n\t\tuint32_t a;\n\t\tuint64_t b;\n\t};", 1),
            ("a.h", "\tuint32_t a;", "\tunion {\n\t\tuint32_t a;\n\t\tuint8_t b[4];\n\t};", 0),
            ("a.h", "\tuint32_t a;", "\tunion {\n\t\tuint32_t a;\n\t\tuint8_t b[5];\n\t};", 1),
            ("a.h", "uint32_t c", "uint64_t c", 1), ("a.h", "uint32_t d", "uint64_t d", 0),
            ("a.h", "uint32_t old", "uint32_t new", 0), ("a.h", "uint32_t old", "uint64_t new", 1), ("a.h", "uint32_t other", "uint32_t new", 1),
            ("a.h", "uint32_t reserved", "uint32_t named", 0), ("a.h", "uint32_t reserved", "uint16_t named", 1)):
        changed = {**base, text: base[text].replace(old, new) if old else base[text]}
        got = list(faults(before, description(changed)))
        if len(got) != wanted:
            sys.exit(f"layouts.py: {old!r} -> {new!r}: {got}")
    if list(faults(before, description({**base, "a.h": base["a.h"].replace("4u", "5u").replace("7", "8")}))):
        sys.exit("layouts.py: another number of the protocol may have other layouts")
    print("skew: 19 descriptions, each judged right")


def main():
    if sys.argv[1:] == ["--self"]:
        return check_self()
    with open(f"{ROOT}/tests/skew/previous") as file:
        commit = sys.argv[1] if len(sys.argv) > 1 else file.read().split()[0]
    if git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        print(f"skew: skipped, this copy of the repository has no {commit}")
        return
    before, now = description(texts_of(commit)), description(texts_of(None))
    found = list(faults(before, now))
    for fault in found:
        print(f"skew: {fault}, under the same session protocol {now[0]}")
    print(f"skew: protocol {before[0]} of {commit[:12]} and {now[0]} now, {len(before[1])} opcodes, {len(before[2])} structs, "
          f"{len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
