# SPDX-License-Identifier: Apache-2.0
"""Rows of functions that are there once for each type of numbers, with S, D, C or Z in their names, become one row by
the macros of protocol/libraries/letters.h."""
import re

from . import text

HEADER = '"protocol/libraries/letters.h"'
TYPES = {"S": "float", "D": "double", "C": "cuComplex", "Z": "cuDoubleComplex"}
PARTS = {"S": "float", "D": "double", "C": "float", "Z": "double"}
SEPARATORS = {"": "NOTHING", ";": "SEMICOLON", ",": "COMMA"}
ROW = re.compile(r"(\t?)(LIKE_\w+|PROTOTYPE_\w+|WITH_64|STUB_WIDE|ITEMS|ITEMS_OF)\(([\w, ]+)\)([;,]?)")


def parts(line):
    """(indent, macro, arguments, separator) of a row; None: it is none."""
    found = ROW.fullmatch(line)
    return found and (found[1], found[2], found[3].split(", "), found[4])


def form(columns, letters):
    """What the macro's name ends in, and its further arguments, for what stands behind the names; None: no macro
    does that."""
    same = next((i for i, column in enumerate(columns) if len(set(column)) > 1), len(columns))
    first, columns = [column[0] for column in columns[:same]], columns[same:]
    if not columns:
        return "", first
    kinds = tuple("T" if column == tuple(TYPES[c] for c in letters) else
                  "R" if column == tuple(PARTS[c] for c in letters) else "?" for column in columns)
    if kinds == ("T", "T") and letters == "SD":  # where all are real
        return "_TR", first
    known = {("T",): "_T", ("T", "R"): "_TR", ("R", "T"): "_RT"}
    return (known[kinds], first) if kinds in known else None


def one_row(rows, letters):
    """The row in place of these; None: there is none."""
    if not all(rows) or len({(r[0], r[1], r[3], len(r[2])) for r in rows}) > 1:
        return None
    indent, macro, first, end = rows[0]
    at = next((i for i in range(len(first[0])) if all(
        r[2][0] == first[0][:i] + c + first[0][i + 1:] for r, c in zip(rows, letters))), None)
    found = form(list(zip(*(r[2][1:] for r in rows))), letters)
    if at is None or not found or not first[0][at + 1:]:
        return None
    return text.row(indent + letters + found[0], SEPARATORS[end], macro, first[0][:at], first[0][at + 1:],
                    *found[1]) + end


def shorter(content):
    """CONTENT with one row for each such group."""
    lines, out, at = content.split("\n"), [], 0
    while at < len(lines):
        for letters in ("SDCZ", "SD", "CZ"):
            made = one_row([parts(line) for line in lines[at:at + len(letters)]], letters) \
                if parts(lines[at]) and at + len(letters) <= len(lines) else None
            if made:
                break
        alone = parts(lines[at])
        out.append(made or (text.row(alone[0] + alone[1], *alone[2]) + alone[3] if alone else lines[at]))
        at += len(letters) if made else 1
    return "\n".join(out)
