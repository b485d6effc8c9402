#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .api language: what is no description stops the generator with FILE:LINE and the reason,
and what is one comes out as wire structs with the layout that the README promises."""
import difflib
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "protocol"))

import generate  # noqa: E402
from generator import agent, api, forms, shim, wire  # noqa: E402

HEAD = "type int i32\ntype size_t u64\ntype CUstream stream\nfamily cuda ops 256..300\n"


def read(text):
    """The description that HEAD and TEXT make."""
    with tempfile.NamedTemporaryFile("w", suffix=".api") as file:
        file.write(HEAD + text)
        file.flush()
        description = api.Api()
        api.read(file.name, "x.api", description)
        api.check(description)
        forms.files(description)
        return description


LIBRARY = "library libx name(X) header(x.h) form(plain) handle(x_t) sonames(12:libx.so.1) software(s) " \
    "version(number f) needs(f)"
REFUSED = [
    ("remote cuX(void);", "x.api:5: not a statement"),
    ("local cuX(void)", "x.api:5: the entry does not end"),
    ("local cuX(void;", "a parenthesis is not closed"),
    ("local cuX(void) later;", "unknown option: later"),
    ("call 7 cuX(void);", "opcode 7 is outside 256..300"),
    ("call 256 cuX(void);\ncall 256 cuY(void);", "x.api:6: cuY: opcode 256 belongs to cuX"),
    ("call cuX(void);", "a generated call needs an opcode"),
    ("local 256 cuX(void);", "local entries do not cross"),
    ("refused cuX(void);", "has a reason"),
    ('local cuX(void) "because";', "has a reason"),
    ("local cuX(void);\nlocal cuX(void);", "x.api:6: cuX: described twice"),
    ("call 256 cuX(int *value);", "pointer value has no mark"),
    ("call 256 cuX(CUgizmo gizmo);", "no type statement for CUgizmo"),
    ("call 256 cuX(out CUgizmo *gizmo);", "no type statement for CUgizmo"),
    ("call 256 cuX(in(count) const int *value);", "in(count): no parameter count"),
    ("local cuX(void) same(cuY);", "same(cuY): no such entry"),
    ("post 256 cuX(void) forgets(cuY);", "forgets(cuY): no such entry with an opcode"),
    ("post 256 cuX(out int *value);", "a post brings nothing back"),
    ("local cuX(int a) as(cuX(a, 1));", "as(cuX): it takes 1 arguments"),
    ("local cuX(int a) as(1);", "as(1): no call"),
    ("library libx name(X);", "x.api:5: library: no header"),
    (LIBRARY + " colour(2);", "x.api:5: library: not understood: colour(2)"),
    (LIBRARY + " kinds(a=16 b=16);", "x.api:5: b: kind 16 belongs to a"),
    ("unserved libx value(1);", "x.api:5: unserved: not understood: no status"),
    ("unserved libx status(X=1) colour(2);", "unserved: not understood: colour"),
    ("unserved libx status(X=1) sonames(12:libx.so.1);", "not CUDA:SONAME=VERSION: 12:libx.so.1"),
    ("names xA;", "no unserved statement before"),
    ("unserved libx status(X=1);\nnames answers(tea) xA;", "x.api:6: names: no such answer"),
    ("unserved libx status(X=1);\nnames xA xA;", "x.api:6: names: xA: twice"),
    ("unserved libx status(X=1);\nnames holds(0) xA;", "x.api:6: names: holds(0): no number of bytes"),
    ("unserved libx status(X=1);\nnames holds(4) xA;\nnames xA;", "x.api:7: names: xA: twice"),
    ("type CUgizmo opal", "x.api:5: type CUgizmo opal: no representation"),
]


def refusals():
    for text, expected in REFUSED:
        try:
            read(text)
            said = "nothing"
        except api.ApiError as error:
            said = str(error)
        yield f"refuses {text!r}", expected in said and said.startswith("x.api:"), said


def layout():
    d = read("call 256 cuX(int a, size_t b, in(a) const int *list, out int *p, str const char *s,"
             " CUstream hStream) ptsz;")
    fields, size = wire.padded(wire.request_fields(d, d.find("cuX")))
    shape = [(f.name, f.size) for f in fields]
    yield ("request: padding is explicit and the size a multiple of 8",
           shape == [("a", 4), ("pad_0", 4), ("b", 8), ("list", 8), ("s", 8), ("hStream", 8)] and
           size == 40, f"{shape} {size}")
    fields, size = wire.padded(wire.reply_fields(d, d.find("cuX")))
    yield "reply: outs only", [f.name for f in fields] == ["p", "pad_0"] and size == 8, str(fields)
    text = shim.stubs(d)
    yield ("a per-thread form turns NULL into CU_STREAM_PER_THREAD",
           "hStream ? hStream : CU_STREAM_PER_THREAD" in text and "cuX_ptsz," in text, text)
    text = agent.serve_source(d)
    yield ("the worker checks a count from the wire without overflow",
           "serve_bytes(body->a, sizeof(int))" in text, text)


def by_hand():
    """What travels, but has no generated halves."""
    d = read("call 256 cuX(int a, out(a) int *list);")
    for make, needs in ((shim.stubs, "hand(shim)"), (agent.serve_source, "hand(agent)")):
        try:
            said = make(d)
        except api.ApiError as error:
            said = str(error)
        yield f"a run that comes back needs {needs}", said == f"x.api:5: cuX: out(a) needs {needs}", said


def stable(first):
    """Generating twice gives the same, and no line is wider than 96 columns."""
    yield "two runs give the same", first == generate.outputs(generate.load()), ""
    wide = [f"{name}: {line}" for name, content in first.items() if name.endswith((".c", ".h"))
            for line in content.splitlines() if len(line.expandtabs(8)) > 96]
    yield "no line is wider than 96 columns", not wide, "\n".join(wide[:5])


def changed(change):
    """What comes out where the text of each description is CHANGE(its name, that text)."""
    with tempfile.TemporaryDirectory() as folder:
        for name in generate.descriptions():
            with open(os.path.join(HERE, "..", "..", "protocol", "api", name)) as file:
                content = file.read()
            with open(os.path.join(folder, name), "w") as file:
                file.write(change(name, content))
        return generate.outputs(generate.load(folder))


ONE_MORE = "\npost 1200 cuStreamOneMore(CUstream hStream, unsigned int value) since(13000);\n"


def insensitive(first):
    """A line on top of each description changes nothing that is generated, and a call on top of cuda.api no line of
    what is there: the table of documents apart, which counts."""
    second = changed(lambda name, content: "# one line more\n" + content)
    other = sorted(path for path in first if first[path] != second.get(path))
    yield "a line on top of each description changes no generated file", not other, "\n  ".join(other)
    second = changed(lambda name, content: re.sub("(?m)^family cuda .*\n", lambda family: family[0] + ONE_MORE, content))
    gone = [f"{path}: {line[2:]}" for path in first if not path.startswith("docs/") and first[path] != second[path]
            for line in difflib.ndiff(first[path].splitlines(), second[path].splitlines()) if line.startswith("- ")]
    more = sum(len(second[path].splitlines()) - len(first[path].splitlines()) for path in first)
    yield "a call on top of cuda.api leaves each generated line as it is", not gone and more > 20, "\n  ".join(gone[:9])


def short(first):
    """What is generated stays what a person can look through."""
    lines = sum(content.count("\n") for path, content in first.items() if "/generated/" in path)
    yield f"at most 40000 generated lines: {lines}", lines <= 40000, ""


def main():
    passed = failed = 0
    first = generate.outputs(generate.load())
    for group in (refusals(), layout(), by_hand(), stable(first), insensitive(first), short(first)):
        for what, good, detail in group:
            print(f"{'ok' if good else 'not ok'} - {what}" + ("" if good else f"\n  {detail}"))
            passed, failed = passed + bool(good), failed + (not good)
    print(f"language: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
