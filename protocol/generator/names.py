# SPDX-License-Identifier: Apache-2.0
"""Reads the statements `unserved` and `names`: libraries of which no name is served, or only some."""
import re
from dataclasses import dataclass, field

from .errors import ApiError

# What a name returns where that is no status.
TAILS = ("status", "value", "pointer", "void")
# What it answers: the version as one number at its first or second argument, the version's parts at its
# first two or three, one part, no text, the status' name, a sentence.
ANSWERS = ("number 0", "number 1", "parts 2", "parts 3", "property", "empty", "word", "sentence")
WORDS = ("status", "value", "number", "sonames", "node", "served")


@dataclass
class Soname:
    """One file of a library."""
    cuda: int        # the major version of CUDA that its front is a part of
    name: str
    parts: list      # of the version that it tells

    @property
    def major(self):
        return int(self.name.rsplit(".", 1)[1])


@dataclass
class Unserved:
    family: str
    stem: str        # "libcufft"
    word: str        # the status of every call: its name
    status: int
    value: int       # what a name with answers(value) returns
    weights: tuple   # of major, minor and patch in a version that is one number
    sonames: list
    node: str        # version node of its names; "" = the SONAME, "-" = none
    served: str      # the folder that serves the other names, or ""
    kinds: dict = field(default_factory=dict)  # name -> (major or 0, what it returns)
    sizes: dict = field(default_factory=dict)  # variable -> (major or 0, its bytes)

    def names(self, soname):
        """{name: what it returns} of one of its files, sorted."""
        return {name: kind for name, (major, kind) in sorted(self.kinds.items())
                if major in (0, soname.major)}

    def variables(self, soname):
        """{variable: its bytes} of one of its files, sorted."""
        return {name: size for name, (major, size) in sorted(self.sizes.items()) if major in (0, soname.major)}

    def node_of(self, soname):
        return "" if self.node == "-" else self.node or soname.name


def parse(rest, family, where):
    """unserved STEM WORD(…) …;"""
    stem, _, rest = rest.partition(" ")
    said = dict(re.findall(r"(\w+)\(([^)]*)\)", rest))
    left = re.sub(r"\w+\([^)]*\)", "", rest).strip()
    unknown = [word for word in said if word not in WORDS]
    if left or unknown or "status" not in said:
        raise ApiError(f"{where}: unserved: not understood: {left or ' '.join(unknown) or 'no status'}")
    word, _, status = said["status"].partition("=")
    sonames = []
    for one in said.get("sonames", "").split():
        match = re.fullmatch(r"(\d+):(\S+\.so\.\d+)=(\d+)\.(\d+)\.(\d+)", one)
        if not match:
            raise ApiError(f"{where}: unserved: not CUDA:SONAME=VERSION: {one}")
        sonames.append(Soname(int(match[1]), match[2], [int(n) for n in match.groups()[2:]]))
    return Unserved(family, stem, word, int(status, 0), int(said.get("value", "-1")),
                    tuple(int(n) for n in said.get("number", "1000 100 1").split()), sonames,
                    said.get("node", ""), said.get("served", ""))


def parse_names(rest, one, where):
    """names [answers(KIND)|holds(BYTES)] [major(N)] NAME …;"""
    said = {}
    while match := re.match(r"(answers|holds|major)\(([^)]*)\)\s*", rest):
        said[match[1]] = match[2]
        rest = rest[match.end():]
    kind = said.get("answers", "status")
    if not one or kind not in TAILS and kind not in ANSWERS:
        raise ApiError(f"{where}: names: no such answer, or no unserved statement before")
    if not re.fullmatch(r"[1-9]\d*", said.get("holds", "1")) or one.served and "holds" in said:
        raise ApiError(f"{where}: names: holds({said['holds']}): no number of bytes, or a library that is served")
    for name in rest.split():
        if not re.fullmatch(r"\w+", name) or name in one.kinds or name in one.sizes:
            raise ApiError(f"{where}: names: {name}: twice, or no name")
        major = int(said.get("major", 0))
        if "holds" in said:
            one.sizes[name] = major, int(said["holds"])
        else:
            one.kinds[name] = major, kind
