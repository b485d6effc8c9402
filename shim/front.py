#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the fronts are linked with: version scripts and symbols, made from the maps of the
libraries that they stand for.

    front.py together MAP...   one version script of several
    front.py nodes MAP...      their version nodes, without the names: a name holder's
    front.py symbols MAP [NAMES]  assembly that defines their names: for a library to link with.
                               NAMES is a file of what the front exports (nm -D), for a map of patterns
"""
import fnmatch
import re
import sys

BLOCK = re.compile(r"(?P<node>[\w.+-]+)?\s*\{(?P<body>[^}]*)\}\s*(?P<parent>[\w.+-]+)?\s*;")


def blocks(path):
    """The (version node or "", exported names) of a version script."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|#[^\n]*", "", file.read(), flags=re.S)
    found = [(m["node"] or "", m["body"]) for m in BLOCK.finditer(text)]
    if not found:
        sys.exit(f"{path}: no version node")
    for node, body in found:
        names = []
        scope = "global"
        for word in body.replace(":", " : ").replace(";", " ").split():
            if word in ("global", "local"):
                scope = word
            elif word != ":" and scope == "global":
                names.append(word)
        yield node, names


def together(paths):
    nodes = {}
    for path in paths:
        for node, names in blocks(path):
            nodes.setdefault(node, []).extend(names)
    # Names without a version cannot stand beside nodes: they are exported by not being mentioned,
    # and so is then whatever else is visible.
    bare = nodes.pop("", None) if len(nodes) > 1 else None
    for at, (node, names) in enumerate(nodes.items()):
        print(f"{node} {{".lstrip())
        print("global:\n" + "".join(f"\t{n};\n" for n in names) if names else "", end="")
        print("local:\n\t*;\n};" if at == 0 and bare is None else "};")


def nodes_of(paths):
    found = dict.fromkeys(node for path in paths for node, _ in blocks(path))
    for node in found:
        print(f"{node} {{\n}};".lstrip())


def exported(path):
    """The names in nm's output."""
    with open(path, encoding="utf-8") as file:
        return [line.split()[-1] for line in file]


def symbols(paths):
    print(".text")
    for _, patterns in blocks(paths[0]):
        # A pattern without such a file is for names of our own, with which no program is linked.
        for pattern in patterns:
            plain = not re.search(r"[*?\[]", pattern)
            for name in [pattern] if plain else fnmatch.filter(exported(paths[1]), pattern) if paths[1:] else ():
                print(f".globl {name}\n.type {name}, @function\n{name}:")
    print('.section .note.GNU-stack, "", @progbits')


DO = {"together": together, "nodes": nodes_of, "symbols": symbols}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in DO:
        sys.exit(__doc__)
    DO[sys.argv[1]](sys.argv[2:])
