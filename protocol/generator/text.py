# SPDX-License-Identifier: Apache-2.0
"""Laying out C as .clang-format would: 96 columns, a tab is 8."""
import os
import re
import textwrap

from .api import abis

WIDTH = 96
# Where a generated file goes: the first pattern that its name has.
FOLDERS = ((r"^serve_hand\.|^libraries\.inc|_serve\.|_library\.|^cuda_driver\.", "gpu-agent/generated"),
           (r"^libraries\.mk|^loader_|_stubs\.|_forms\.|_calls\.|_procs\.|_callbacks\.|_hand\.|_send\.|_unserved\.", "shim/generated"),
           (r"", "protocol/generated"))


def place(name):
    """The path of the generated file NAME, from the repository's root."""
    folder = next(folder for pattern, folder in FOLDERS if re.search(pattern, name))
    return f"{folder}/{name}"


def includes(*names):
    """What #include lines name for generated headers, sorted by path."""
    return [f'"{path}"' for path in sorted(place(name) for name in names)]


def columns(line):
    return len(line.expandtabs(8))


def wrap(head, items, tail, indent="\t\t", separator=","):
    """HEAD item, item, … TAIL, broken at items, further lines behind INDENT."""
    lines, line = [], head
    for i, item in enumerate(items):
        end = separator if i < len(items) - 1 else tail.split("\n", 1)[0]
        gap = "" if line.endswith(("(", "{", "\t")) else " "
        if columns(line + gap + item + end) > WIDTH and line != indent:
            lines.append(line)
            line, gap = indent, ""
        line += gap + item + (separator if i < len(items) - 1 else tail)
    if not items:
        line += tail
    lines.append(line)
    return "\n".join(lines)


def row(macro, *items):
    """MACRO(ITEM, …), broken behind commas, and where that is not enough behind ?: too."""
    lines, line = [], ""
    for piece in (f"{macro}(" + ", ".join(items) + ")").split(", "):
        if line and columns(f"{line}, {piece},") > WIDTH:
            lines.append(line + ",")
            line = "\t" + piece
        else:
            line += (", " if line else "") + piece
    return "\n".join(one if columns(one) <= WIDTH else one.replace(" ?: ", " ?:\n\t")
                     for one in lines + [line])


def broken(line, width):
    """LINE, and where it is too long its rest behind two more tabs."""
    out, indent = [], re.match(r"\t*", line)[0] + "\t\t"
    while columns(line) > width:
        gaps = [i for i, c in enumerate(line) if c == " " and columns(line[:i]) <= width]
        at = max([i for i in gaps if line[i - 1] == ","] or gaps)
        out.append(line[:at])
        line = indent + line[at + 1:]
    return out + [line]


def broken_lines(content):
    return "".join(f"{part}\n" for line in content.split("\n") for part in broken(line, WIDTH))


def statements(items, separator):
    """Expressions or declarations of a function's body, as many on a line as fit."""
    return broken_lines(wrap("\t", items, ";", "\t", separator))


def macro(head, body):
    """#define HEAD BODY, which is indented."""
    lines = [f"#define {head}"]
    for line in re.sub(r",\n\t+(?![\t.}])", ", ", body).split("\n"):
        lines += broken("\t" + line if line else "", WIDTH - 2)
    return "\n".join(lines).replace("\n", " \\\n").replace("\n \\", "\n\\") + "\n"


def body(function):
    """A function's definition from its brace on, or from the macro that stands for its body."""
    return re.split(r"\n(?=\{|SEND_ITEMS\()", function, maxsplit=1)[1]


def fitting(line):
    """A call in one line, if need be with a further one for its arguments."""
    return line if columns(line) <= WIDTH else line.replace("(", "(\n\t", 1)


def grouped(items):
    """A parameter or argument list."""
    return "(" + ", ".join(items) + ")"


def refusals(entries, line):
    """Rows of what is refused, [(entry, what line() gets)], below the reason of each."""
    reasons = {}
    for entry, what in entries:
        reasons.setdefault(entry.reason, []).append((abis(entry), line(entry, what)))
    out = ""
    for reason, rows in reasons.items():
        said = " \\\n\t".join(f'"{part}"' for part in textwrap.wrap(reason, WIDTH - 20, drop_whitespace=False))
        out += f"\n#define WHY {said}\n{by_major(rows)}#undef WHY\n"
    return out


def parameters(entry, extra=()):
    """The parameter list's items, ["void"] where there are none."""
    return [p.declaration for p in entry.params] + list(extra) or ["void"]


def by_major(rows):
    """The texts of ROWS, [(majors, text)]; what not every major has stands under #if VCUDA_ABI."""
    out, open_for = "", None
    for majors, content in rows:
        majors = None if len(majors) > 1 else majors
        if majors != open_for:
            out += "#endif\n" if open_for else ""
            out += "".join(f"#if VCUDA_ABI == {m}\n" for m in majors or ())
            open_for = majors
        out += content
    return out + ("#endif\n" if open_for else "")


def prototype(result, name, items, tail=";"):
    """A declaration or, with another TAIL, the head of a definition."""
    gap = "" if result.endswith("*") else " "
    return wrap(f"{result}{gap}{name}(", items, ")" + tail)


def head(about, guard=None, includes=()):
    """The first lines of a generated file; ABOUT says what it is."""
    lines = ["/* SPDX-License-Identifier: Apache-2.0", " *"]
    lines += [f" * {line}" if line else " *" for line in about.split("\n")]
    lines += [" *", " * Generated by protocol/generate.py from the .api files; edit those.", " */"]
    if guard:
        lines += [f"#ifndef {guard}", f"#define {guard}"]
    lines.append("")
    lines += [f"#include {name}" if name else "" for name in includes]
    if includes:
        lines.append("")
    return "\n".join(lines)


def table(about, rows):
    """A list of macros' rows, for whoever defines the macros."""
    return head(about) + "\n".join(rows) + "\n"


def packed(rows, *macros, by_subject=False):
    """The rows of a list; those of MACROS, which are names and nothing else, as many on a line as fit.  BY_SUBJECT:
    a line has names of one subject (cuCtx…, cuMem…), so that one more name moves those of its own subject only."""
    out, run, subject = [], [], None
    for row in rows + [""]:
        packs = row.startswith(tuple(f"{macro}(" for macro in macros))
        of = (not by_subject or re.search(r"[a-z]+[A-Z][a-z]*|$", row)[0]) if packs else None
        if run and of != subject:
            out.append(wrap("", run, "", indent="", separator="").lstrip())
            run = []
        subject = of
        (run if packs else out).append(row)
    return out[:-1]


def write(path, text):
    """Writes TEXT to the file at PATH where it differs from what is there."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    text = text.rstrip("\n") + "\n"
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
