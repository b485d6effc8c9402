# SPDX-License-Identifier: Apache-2.0
"""Reads .api files: the one description that everything generated falls out of.

A file is a list of statements.  `family` and `type` end with their line, an entry ends with `;`.
Whatever is not understood stops the generator with FILE:LINE and the text.
"""
import re
from dataclasses import dataclass, field

from . import names
from .errors import ApiError

VERBS = ("local", "cached", "post", "learned", "call", "both", "refused")
MARKS = ("in", "out", "out?", "inout", "inout?", "str", "new", "gone", "device", "host", "workspace",
         "scalar", "result", "info", "each", "ints", "perf", "fills", "varying", "stays", "sized",
         "aligned", "value", "numbers")
OPTIONS = ("payload", "hand", "ptsz", "ptds", "early", "lasting", "current", "forgets", "same", "since", "abi",
           "keeps", "tells", "asks", "null_too", "on_host", "sets_stream", "gets_stream",
           "as", "answers", "no_context", "straight", "opaque", "old", "proc", "wide", "slow", "waits",
           "unbound", "named", "looks", "within", "overtakes", "aside", "idles", "holds", "copied",
           "stages", "requires", "captured")

# What a capture says to a call, before anything else about it is looked at.
CAPTURED = ("node", "never", "unsafe", "own")


@dataclass
class Param:
    type: str            # C type as written, without the mark: "const void *"
    name: str
    declaration: str     # as in C: "const void *srcHost", "void (*fn)(void *)"
    mark: str = ""
    size: str = ""       # the mark's argument: element count, or kind of handle
    family: str = ""     # its entry's

    @property
    def base(self):
        """The pointed-to or plain type without const: what the type table knows."""
        return re.sub(r"\bconst\b", "", self.type).replace("*", "").strip()

    @property
    def stars(self):
        return self.type.count("*")


@dataclass
class Entry:
    verb: str
    name: str
    params: list
    family: str
    result: str
    file: str
    line: int
    op: int = 0
    options: dict = field(default_factory=dict)  # option -> its argument text, "" if none
    reason: str = ""
    comment: str = ""

    majors: tuple = (12, 13)  # of its library
    library: object = None    # Library, of a family that has one
    called: bool = False      # a form of it, or what is the same, calls its hand_NAME

    def has(self, option):
        return option in self.options

    def hand(self, side):
        """Whether that half is not a frame that is made from the marks."""
        return side in self.options.get("hand", "").split(",") or side == "shim" and self.has("as")

    @property
    def twin(self):
        """Suffix of the per-thread-stream form, or ""."""
        return "_ptsz" if self.has("ptsz") else "_ptds" if self.has("ptds") else ""

    @property
    def since(self):
        return int(self.options.get("since") or 0)

    @property
    def base(self):
        """The name without its version: what cuGetProcAddress is asked for."""
        return self.options.get("proc") or re.sub(r"_v\d+$", "", self.name)

    @property
    def streams(self):
        """The parameters that are streams (whose NULL means the default stream)."""
        return [p for p in self.params if p.type in ("CUstream", "cudaStream_t")]

    def declared(self, newest=13000):
        """Whether the header that stubs are compiled with knows the call's types."""
        return self.since <= newest and not self.has("opaque")

    @property
    def origin(self):
        return f"{self.file}:{self.line}"


@dataclass
class Type:
    name: str
    wire: str            # one of WIRES
    size: int = 0
    align: int = 0
    kind: str = ""       # of a handle


@dataclass
class Library:
    """A family whose functions run on the agent, in its own library there."""
    family: str
    stem: str            # "libcublas"
    sonames: list        # [(major of CUDA that its front is a part of, "libcublas.so.12")]
    parts: list          # the same for names of its parts that programs open by themselves
    handle: str          # C type of its handles
    named_at: bool       # a handle is memory of the program's with its name, and travels by its address
    others: dict         # C types of further ones: {type: status of one that is none of ours}
    kinds: dict          # of its handles: {name: number in enum handle_kind}
    software: str        # the file beside the software GPU
    version: tuple       # (form, function) that says the agent's version
    needs: tuple         # what a file must export to be that library
    form: str            # how its calls travel: FORMS
    statuses: dict       # what the front answers of itself: {reason: number}
    state: list          # the handle's words that travel with each call
    kept: dict           # those that do not: {name: what a new handle has}
    also: str            # the kind of another library's handles that pass for its own, or ""
    says: str            # what the front makes of a status for the program, or ""
    numbered: str        # what the worker makes of the library's for the stanza's numbers, or ""
    told: str            # the function whose number comes back with a new handle, or ""
    nodeless: bool       # its names have no version
    exported: bool       # what is served is written by hand as it is exported
    second: str          # what the second name of each function has before the first, or ""
    hooks: list          # what of its statuses is written by hand, as FAMILY_NAME
    beside: bool         # its calls that are awaited are served beside the worker's loop
    records: str         # of a profiler: the file of protocol/api with its numbers of the driver's and the runtime's calls, or ""
    origin: str          # FILE:LINE
    name: str            # "cuBLAS"
    header: str          # NVIDIA's header that declares it

    @property
    def majors(self):
        return sorted({int(name.rsplit(".", 1)[1]) for _, name in self.sonames})

    @property
    def key(self):
        """Its name in the agent's configuration."""
        return self.stem[3:]

    def names(self, names):
        """NAMES, and the second ones."""
        return {*names, *(self.second + name for name in names)}

    def word(self, name):
        """The number of a handle's word: first those that travel."""
        words = self.state + [None] * (4 - len(self.state)) + list(self.kept)
        if name not in words:
            raise ApiError(f"{self.stem}: no word {name} in state() or kept()")
        return words.index(name)


@dataclass
class Api:
    entries: list = field(default_factory=list)
    types: dict = field(default_factory=dict)
    own: dict = field(default_factory=dict)   # the same by (family, name): descriptors travel as each says
    ops: dict = field(default_factory=dict)   # family -> (first, last)
    libraries: dict = field(default_factory=dict)  # family -> Library
    unserved: dict = field(default_factory=dict)   # family -> names.Unserved

    def of(self, family):
        return [e for e in self.entries if e.family == family]

    def find(self, name):
        return next((e for e in self.entries if e.name == name), None)


def split_top(text, separator=","):
    """TEXT split at separators that lie outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == separator and not depth:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def closing(text, at):
    """Index of the parenthesis that closes the one at AT, -1 if none does."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return -1


def parse_param(text, number):
    mark, size = "", ""
    match = re.match(r"(in)?out\?|(in|out|inout|str|new|gone|device|host|scalar|result|info|each|ints|perf|fills|varying|aligned|value|workspace|stays|sized|numbers)\b(?!\s*[,)])", text)
    if match and match.group(0) in MARKS:
        mark = match.group(0)
        text = text[match.end():].strip()
        if text.startswith("("):
            end = closing(text, 0)
            size, text = text[1:end].strip(), text[end + 1:].strip()
    text = re.sub(r"\s*(\*+)\s*", r" \1", text)
    pointer = re.match(r"(.*)\(\s*\*\s*(\w+)\s*\)(\(.*\))$", text)
    if pointer:
        return Param("function", pointer.group(2), text, mark, size)
    match = re.match(r"^(.*?[\s*])(\w+)((?:\[\w*\])*)$", text)
    words = re.findall(r"\w+", text)
    if not match or words[-1] in ("int", "long", "char", "void"):
        return Param(text, f"unnamed{number}", text, mark, size)
    kind = match.group(1).strip() + (" *" if match.group(3) else "")
    return Param(kind, match.group(2), text, mark, size)


def parse_options(text, where):
    options, reason = {}, ""
    while text:
        if text[0] == '"':
            end = text.index('"', 1)
            reason, text = text[1:end], text[end + 1:].strip()
            continue
        match = re.match(r"\w+", text)
        if not match or match.group(0) not in OPTIONS:
            raise ApiError(f"{where}: unknown option: {text}")
        name, value = match.group(0), ""
        text = text[match.end():]
        if text.startswith("("):
            end = closing(text, 0)
            value = text[1:end] if name in ("as", "overtakes", "stages", "requires") else text[1:end].replace(" ", "")
            value, text = " ".join(value.split()), text[end + 1:]
        options[name] = value
        text = text.strip()
    return options, reason


def parse_entry(text, family, result, file, line):
    where = f"{file}:{line}"
    verb, rest = text.split(None, 1)
    match = re.match(r"(\d+)\s+", rest)
    op = int(match.group(1)) if match else 0
    if match:
        rest = rest[match.end():]
    paren = rest.index("(")
    head = rest[:paren].strip()
    match = re.search(r"(\w+)$", head)
    if not match:
        raise ApiError(f"{where}: no name before the parameters: {text}")
    name = match.group(1)
    own = head[:match.start()].strip()
    end = closing(rest, paren)
    if end < 0:
        raise ApiError(f"{where}: {name}: a parenthesis is not closed")
    inner = " ".join(rest[paren + 1:end].split())
    params = [] if inner in ("", "void") else [
        parse_param(p, i) for i, p in enumerate(split_top(inner))]
    options, reason = parse_options(rest[end + 1:].strip(), where)
    return Entry(verb, name, params, family, own or result, file, line, op, options, reason)


def parse_type(words, where):
    """type NAME WIRE …, NAME may be two words (struct x)."""
    at = next((i for i, word in enumerate(words) if i and word in WIRES), 0)
    if not at:
        raise ApiError(f"{where}: type {' '.join(words)}: no representation")
    name, wire, rest = " ".join(words[:at]), words[at], words[at + 1:]
    if wire in ("struct", "bytes"):
        return Type(name, wire, int(rest[0]), int(rest[1]) if wire == "struct" else 1)
    if wire == "descriptor":
        return Type(name, wire, 0, 0, rest[0])
    if wire == "handle":
        return Type(name, wire, 8, 8, rest[0])
    size = {"u32": 4, "i32": 4, "enum": 4, "f32": 4}.get(wire, 8)  # i64 u64 f64
    return Type(name, wire, size, size)


# How a library's calls travel.  plain: with the handle's state, arguments by value and addresses;
# content: descriptors by content, as a sequence of items.
FORMS = ("plain", "content")
# Words of a `library` statement, each with (…).
LIBRARY_WORDS = ("name", "header", "sonames", "handle", "software", "version", "needs", "form")
LIBRARY_MAY = ("parts", "others", "kinds", "statuses", "state", "kept", "also", "says", "numbered", "told",
               "node", "exports", "second", "hooks", "beside", "records")


def parse_library(text, family, where):
    """library STEM WORD(…) …;"""
    stem, _, rest = text.partition(" ")
    said, rest = {}, rest.strip()
    while rest:
        match = re.match(r"(\w+)\(([^)]*)\)\s*", rest)
        if not match or match.group(1) not in LIBRARY_WORDS + LIBRARY_MAY:
            raise ApiError(f"{where}: library: not understood: {rest}")
        said[match.group(1)] = match.group(2).split()
        rest = rest[match.end():]
    missing = [word for word in LIBRARY_WORDS if word not in said]
    if missing or said["form"][0] not in FORMS:
        raise ApiError(f"{where}: library: no {' '.join(missing) or 'such form'}")
    sonames, parts = ([(int(major), name) for major, name in (part.split(":") for part in said.get(word, ()))]
                      for word in ("sonames", "parts"))
    return Library(family, stem, sonames, parts, said["handle"][0], "at" in said["handle"],
                   numbers(said.get("others", ())), numbers(said.get("kinds", ())), said["software"][0],
                   tuple(said["version"]), tuple(said["needs"]), said["form"][0],
                   numbers(said.get("statuses", ())), said.get("state", []),
                   numbers(said.get("kept", ())),
                   *(said.get(word, [""])[0] for word in ("also", "says", "numbered", "told")),
                   said.get("node") == ["-"], said.get("exports") == ["hand"], said.get("second", [""])[0], said.get("hooks", []),
                   said.get("beside") == ["calls"], said.get("records", [""])[0],
                   where, said["name"][0], said["header"][0])


def numbers(words):
    """{name: number} of NAME=NUMBER or NAME, which is 0."""
    return {name: int(number or 0) for name, _, number in (w.partition("=") for w in words)}


# Statements of more than one line that are no entries.
STATEMENTS = ("library", "unserved", "names")


def parse_statement(word, rest, api, family, where):
    if word == "library":
        api.libraries[family] = parse_library(rest, family, where)
    elif word == "unserved":
        api.unserved[family] = names.parse(rest, family, where)
    else:
        names.parse_names(rest, api.unserved.get(family), where)


WIRES = ("u32", "i32", "enum", "u64", "i64", "f32", "f64", "stream", "function", "handle", "struct",
         "bytes", "descriptor")


def read(path, shown, api):
    """Adds the statements of the file at PATH to API; SHOWN is its name in messages."""
    family = result = ""
    pending, start, comment = "", 0, []
    with open(path, encoding="utf-8") as file:
        for number, raw in enumerate(file, 1):
            line = raw.split("#", 1)[0].rstrip() if not pending else raw.rstrip()
            if raw.lstrip().startswith("#"):
                comment.append(raw.strip()[1:].strip())
                continue
            if not line.strip():
                if not pending:
                    comment = []
                continue
            words = line.split()
            if not pending and words[0] == "family":
                family = words[1]
                if "ops" in words:
                    first, last = words[words.index("ops") + 1].split("..")
                    api.ops[family] = (int(first), int(last))
                if "result" in words:
                    result = words[words.index("result") + 1]
                else:
                    result = "CUresult"
                continue
            if not pending and words[0] == "type":
                kind = parse_type(words[1:], f"{shown}:{number}")
                api.types[kind.name] = kind
                api.own[family, kind.name] = kind
                continue
            if not pending:
                start = number
                if words[0] not in VERBS + STATEMENTS:
                    raise ApiError(f"{shown}:{number}: not a statement: {line.strip()}")
            pending += " " + line.strip()
            if pending.endswith(";") and pending.split()[0] in STATEMENTS:
                parse_statement(*pending[:-1].split(None, 1), api, family, f"{shown}:{start}")
                pending, comment = "", []
            elif pending.endswith(";"):
                entry = parse_entry(pending[:-1].strip(), family, result, shown, start)
                entry.comment = " ".join(comment)
                for param in entry.params:
                    param.family = family
                entry.library = api.libraries.get(family)
                if entry.library:
                    entry.majors = entry.library.majors
                api.entries.append(entry)
                pending, comment = "", []
    if pending:
        raise ApiError(f"{shown}:{start}: the entry does not end with ;")


def check(api):
    """What must hold across entries; the first breach is raised."""
    ops, names, kinds = {}, {}, {}
    for one in api.libraries.values():
        for name, number in one.kinds.items():
            if kinds.setdefault(number, name) != name:
                raise ApiError(f"{one.origin}: {name}: kind {number} belongs to {kinds[number]}")
    for e in api.entries:
        where = f"{e.origin}: {e.name}"
        if e.op:
            first, last = api.ops.get(e.family, (1, 0))
            if not first <= e.op <= last:
                raise ApiError(f"{where}: opcode {e.op} is outside {first}..{last}")
            if e.op in ops:
                raise ApiError(f"{where}: opcode {e.op} belongs to {ops[e.op]}")
            ops[e.op] = e.name
        for abi in abis(e):
            if (e.name, abi) in names:
                raise ApiError(f"{where}: described twice")
            names[e.name, abi] = e
        if (e.verb == "refused") != bool(e.reason):
            raise ApiError(f"{where}: a refused entry, and no other, has a reason")
        if e.has("answers") and e.verb != "local":
            raise ApiError(f"{where}: answers() is for local entries")
        if e.verb in ("local", "refused") and e.op:
            raise ApiError(f"{where}: {e.verb} entries do not cross and have no opcode")
        if is_content(e) and e.verb not in ("local", "refused") and not e.op:
            raise ApiError(f"{where}: a {e.verb} needs an opcode")
        simple = e.verb not in ("local", "refused") and not e.hand("shim") and not e.has("same")
        if simple and not e.op:
            raise ApiError(f"{where}: a generated {e.verb} needs an opcode")
        for p in e.params if e.op else ():
            check_param(api, e, p, where)
        other = e.options.get("same")
        if other and not api.find(other):
            raise ApiError(f"{where}: same({other}): no such entry")
        for target in filter(None, (api.find(other or e.options.get("as", "").split("(")[0]),)):
            target.called = True
        if unknown := set(e.options.get("captured", "own").split(",")) - set(CAPTURED):
            raise ApiError(f"{where}: captured({unknown.pop()}): one of {', '.join(CAPTURED)}")
        for name in e.options.get("forgets", "").split(","):
            if name and not (api.find(name) and api.find(name).op):
                raise ApiError(f"{where}: forgets({name}): no such entry with an opcode")


def check_param(api, entry, param, where):
    """What must hold for a parameter that crosses."""
    if param.mark in ("new", "gone", "host"):
        return
    if is_content(entry):
        return  # generator/items.py looks at them
    if entry.library and (entry.hand("agent") or param.mark or
                          param.base == entry.library.handle):
        return
    if param.stars and not param.mark:
        raise ApiError(f"{where}: pointer {param.name} has no mark")
    if param.mark in ("out", "out?", "inout", "inout?") and entry.verb == "post":
        raise ApiError(f"{where}: a post brings nothing back: {param.name}")
    if param.mark in ("in", "inout", "out", "device") and param.size:
        for word in re.findall(r"\b[A-Za-z_]\w*", param.size):
            if word not in {p.name for p in entry.params}:
                raise ApiError(f"{where}: {param.mark}({param.size}): no parameter {word}")
        return
    if param.mark not in ("str", "device") and param.base not in api.types:
        raise ApiError(f"{where}: no type statement for {param.base}")


def is_content(entry):
    return entry.library is not None and entry.library.form == "content"


def abis(entry):
    """The majors of its library that have the entry."""
    text = entry.options.get("abi", "")
    return [int(a) for a in text.split(",")] if text else list(entry.majors)
