#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents name is there: files, folders, links and their anchors.

    tests/docs/docs.py          every .md of the repository; a line for each fault, exit status 1
    tests/docs/docs.py --self   the checks themselves, on texts with one fault each

In every document a relative link leads to a file, and its anchor to a heading; and a name in
backticks that begins with a folder of the repository, or ends like a source file, is there.  In
docs/ARCHITECTURE.md, CONTRIBUTING.md and the README of a room every path in backticks must be
there, and every `function()` and `NAME_LIKE_THIS` must stand in a source file.  A test function
in parentheses behind its file stands in that file.  In the table of calls of docs/HACKING.md each
file has the row's call, as the kind says, and so has what is generated.  No comment of a C file names a C file that is
gone.  README.md counts what is refused as docs/COVERAGE.md does.  Each room of tools/layers.py and of tests/unit has a README, and no unit test lies in none.
"""
import fnmatch
import os
import re
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROOMS = ("common", "protocol", "transport", "shim", "gpu-agent", "softgpu", "sidecar", "command")
STRICT = ("docs/ARCHITECTURE.md", "CONTRIBUTING.md")
# They tell of what was there once.
HISTORY = ("CHANGELOG.md",)
# Folders that a build or a test makes, and files that users have.
MADE = ("build/", ".dist/", "deploy/helm/vcuda/charts/")
SOURCE = (".c", ".h", ".api", ".mk", ".cu", ".map", ".tpl")
# Headers of NVIDIA.
FOREIGN = ("cuda.h", "nvml.h", "nvJitLink.h", "cublas_v2.h", "cublasLt.h", "cudnn.h", "cufft.h", "cufftXt.h", "cufft_device.h", "curand_discrete.h", "curand_kernel.h", "cusolverDn.h", "cusolverRf.h", "cusolverSp.h", "cusparse.h", "cuda_runtime_api.h",
           "generated_cuda_meta.h", "generated_cuda_runtime_api_meta.h", "fatbinary_section.h")
SLASHED = re.compile(r"[\w.*{}-][\w./*{},-]*/[\w./*{},-]*")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
SINGLE = re.compile(r"[\w*-]+(\.[\w-]+)+")
PLACEHOLDER = re.compile(r"[a-z]_[A-Z]{4,}$")  # serve_NAME
NAME = re.compile(r"^[A-Za-z]+_\w+$")
FUNCTION = re.compile(r"(\w+)\(\)")
# docs/HACKING.md's row of a call: name, kind, files, what is generated.
CALL = re.compile(r"\| `(cu\w+)` \| (\w+)\b[^|]*\|([^|]*)\|([^|]*)\|$")
GENERATED = {"stub": ("shim/generated/",), "wire struct": ("protocol/generated/",),
             "serve function": ("gpu-agent/generated/",), "both halves": ("shim/generated/", "gpu-agent/generated/")}


def braces(name):
    """a{b,c}d -> abd, acd"""
    got = re.search(r"\{([^{}]*)\}", name)
    if not got:
        return [name]
    return [whole for part in got.group(1).split(",")
            for whole in braces(name[:got.start()] + part + name[got.end():])]


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def prose(text):
    """The text with its code blocks emptied, line for line."""
    lines, fence = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fence = not fence
            line = ""
        lines.append("" if fence or line.startswith("    ") else line)
    return lines


def anchors(text):
    """Of all headings; the second of one name has -1 behind it."""
    found = {}
    for line in prose(text):
        got = re.match(r"#+ (.*)", line)
        if got:
            name = slug(got.group(1))
            count = found.get(name, 0)
            found[name] = count + 1
            if count:
                found[f"{name}-{count}"] = 1
    return found


class Documents:
    """TEXTS: {path of a document: its text}; FILES: every path of the repository."""

    def __init__(self, texts, files, words=(), sources=None):
        self.texts, self.files, self.words = texts, set(files), set(words)
        self.sources = sources or {}
        self.folders = {folder for path in files for folder in parents(path)}
        self.tops = {path.split("/")[0] for path in files if "/" in path}
        self.names = {os.path.basename(path) for path in files}
        self.faults = []

    def there(self, path):
        """A word in capitals stands for a name, the same one wherever it is: shim/ROOM/ROOM.h."""
        path = os.path.normpath(path)
        if path in self.files or path in self.folders:
            return True
        seen = set()

        def placeholder(got):
            word = got.group()
            if word in seen:
                return f"(?P={word})"
            seen.add(word)
            return f"(?P<{word}>[^/]+)"

        pattern = re.sub(r"[A-Z]{4,}", placeholder, re.escape(path).replace(r"\*", "[^/]*"))
        return pattern != re.escape(path) and any(
            re.fullmatch(pattern, name) for name in self.files | self.folders)

    def fault(self, document, number, text):
        self.faults.append(f"{document}:{number}: {text}")

    def link(self, document, number, target):
        """TARGET of a Markdown link."""
        if re.match(r"[a-z]+:", target):
            return
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path \
            else document
        if not self.there(path):
            self.fault(document, number, f"the link leads to {path}, which is not there")
        elif anchor and path in self.texts and anchor not in anchors(self.texts[path]):
            self.fault(document, number, f"{path} has no heading for #{anchor}")

    def code(self, document, number, text, strict):
        """TEXT between backticks."""
        text = re.sub(r":\d+$", "", text.strip())
        if SLASHED.fullmatch(text):
            self.path(document, number, text, strict)
        elif SINGLE.fullmatch(text) and text.endswith(SOURCE) and text not in FOREIGN:
            for name in braces(re.sub(r"[A-Z]{4,}", "*", text)):
                if not any(fnmatch.fnmatch(known, name) for known in self.names):
                    self.fault(document, number, f"no file has the name {name}")
        if strict:
            for name in FUNCTION.findall(text) + NAME.findall(text):
                if name not in self.words and not PLACEHOLDER.search(name):
                    self.fault(document, number, f"no source file has {name}")

    def path(self, document, number, text, strict):
        if text.startswith(MADE) or not (strict or text.split("/")[0] in self.tops):
            return
        for name in braces(text):
            beside = os.path.join(os.path.dirname(document), name)
            if not self.there(name) and not self.there(beside):
                self.fault(document, number, f"{name} is not there")

    def check(self, document):
        strict = document in STRICT or (
            document.split("/")[0] in ROOMS and document.endswith("/README.md"))
        for number, line in enumerate(prose(self.texts[document]), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                self.link(document, number, target)
            self.tests(document, number, line)
            if document == "docs/HACKING.md":
                self.call(document, number, line)
            if document not in HISTORY:
                for text in re.findall(r"`([^`]+)`", line):
                    self.code(document, number, text, strict)


    def tests(self, document, number, line):
        """Test functions that stand in parentheses behind the file that has them."""
        for path, names in re.findall(r"`(tests/[^`]+)` \(([^)]*`)\)", line):
            text = self.sources.get(path, "")
            for name in re.findall(r"`(\w+)…?`", names):
                if path in self.files and name not in text:
                    self.fault(document, number, f"{path} has no test {name}")

    def call(self, document, number, line):
        """A row of the table of calls: each file has the call, or the frame of its own that the row names."""
        row = CALL.match(line)
        if not row:
            return
        name, kind, files, generated = row.groups()
        names = [name, *re.findall(r"\(`(\w+)`\)", files)]
        looks = re.compile(rf"(\b|[a-z]_)({'|'.join(names)})\b")
        paths = [path for path in re.findall(r"`([^`]+)`", files) if "/" in path]
        for path in paths:
            if path in self.files and not looks.search(self.sources.get(path, "")):
                self.fault(document, number, f"{path} has no {name}")
        if not any(path.endswith(".api") and re.search(rf"^{kind}( \d+)? {name}\(", self.sources.get(path, ""), re.M)
                   for path in paths):
            self.fault(document, number, f"no description in the row says {kind} {name}")
        for what in (what for what in GENERATED if what in generated):
            for folder in GENERATED[what]:
                if not any(path.startswith(folder) and looks.search(text) for path, text in self.sources.items()):
                    self.fault(document, number, f"{folder} has no {what} of {name}")

    def counts(self):
        """What README.md says is refused of driver and runtime is what docs/COVERAGE.md counts."""
        said = re.search(r"(\d+) of the (\d+) functions of the driver, (\d+) of the (\d+) of the runtime", self.texts["README.md"])
        counted = [row for name in ("libcuda.so.1", "libcudart.so.12 and libcudart.so.13")
                   for row in re.findall(rf"^\| {re.escape(name)} \| (\d+) \|.* (\d+) \|$", self.texts["docs/COVERAGE.md"], re.M)]
        if not said or [(said[2], said[1]), (said[4], said[3])] != counted:
            self.fault("README.md", 0, f"docs/COVERAGE.md counts otherwise (functions, refused): {counted}")

    def comments(self, path, text):
        """Files that the comments of a C file name."""
        for comment in COMMENT.finditer(text):
            start = text.count("\n", 0, comment.start()) + 1
            for got in re.finditer(r"(?<![\w./*-])[\w-]+(?:/[\w-]+)*\.[ch]\b", comment.group()):
                name = got.group()
                if name not in FOREIGN and not any(
                        known == name or known.endswith("/" + name) for known in self.files):
                    number = start + comment.group().count("\n", 0, got.start())
                    self.fault(path, number, f"no file has the name {name}")


def parents(path):
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def rooms():
    """The folders that tools/layers.py knows as rooms."""
    sys.path.insert(0, os.path.join(TOP, "tools"))
    import layers
    return [room for room in (*layers.ALLOWED, *ROOMS) if os.path.isdir(os.path.join(TOP, room))
            and room.split("/")[0] in ROOMS]


def rooms_of_tests(files):
    """The folders of tests/unit, and (file, 0, what is wrong) of each source that lies in none."""
    inside = [path for path in files if path.startswith("tests/unit/")]
    return (sorted({os.path.dirname(path) for path in inside if path.count("/") > 2}),
            [(path, 0, "a test of tests/unit lies in the room of what it tests") for path in inside
             if path.count("/") == 2 and path.endswith((".c", ".h", ".cu"))])


def self_test():
    """Each text has one fault, or none, and says which."""
    files = ["docs/ARCHITECTURE.md", "docs/A.md", "shim/engine/ring.c", "tests/a.c"]
    cases = (
        ("docs/A.md", "[a](B.md)", "docs/B.md"),
        ("docs/A.md", "[a](#gone)", "#gone"),
        ("docs/A.md", "# Is here\n[a](#is-here) [b](../shim/engine/ring.c) [c](https://x/y)", None),
        ("docs/A.md", "`shim/gone.c`", "shim/gone.c"),
        ("docs/A.md", "`shim/engine/{ring,gone}.c`", "shim/engine/gone.c"),
        ("docs/A.md", "`shim/*/ring.c` `shim/engine/` `ring.c` `a/b` `build/x/y.c`", None),
        ("docs/A.md", "`gone.c`", "gone.c"),
        ("docs/A.md", "`shim/ROOM/ring.c` `NAME.c` `cuda.h`", None),
        ("docs/A.md", "`shim/ROOM/NAME.h`", "NAME.h"),
        ("docs/A.md", "`shim/ROOM/ROOM.c`", "ROOM.c"),
        ("docs/A.md", "`tests/NAME.c` `shim/*/NAME.c` `*/engine/ring.c`", None),
        ("docs/ARCHITECTURE.md", "`agent/worker`", "agent/worker"),
        ("docs/ARCHITECTURE.md", "`shim/engine/ring.c:12` `put()`", None),
        ("docs/ARCHITECTURE.md", "`gone()`", "gone"),
        ("docs/ARCHITECTURE.md", "`GONE_NAME` `put`", "GONE_NAME"),
        ("docs/ARCHITECTURE.md", "`serve_NAME` `put`", None),
        ("docs/A.md", "`tests/a.c` (`is_here`, `is_he…`)", None),
        ("docs/A.md", "`tests/a.c` (`is_here`, `gone`)", "no test gone"),
    )
    for document, text, wanted in cases:
        checked = Documents({document: text}, files, ["put"], {"tests/a.c": "void is_here"})
        checked.check(document)
        right = len(checked.faults) == 1 and wanted in checked.faults[0] if wanted \
            else not checked.faults
        if not right:
            sys.exit(f"docs.py: {text!r}: wanted {wanted}, got {checked.faults}")
    for row, wanted in (
            ("| `cuA` | post, half by hand | `x/p.api`, `shim/a.c` | stub, wire struct |", None),
            ("| `cuA` | post | `x/p.api`, `shim/b.c` | stub |", "shim/b.c has no cuA"),
            ("| `cuA` | post | `x/p.api`, `shim/c.c` | stub |", "shim/c.c is not there"),
            ("| `cuA` | call | `x/p.api` | stub |", "no description in the row says call cuA"),
            ("| `cuA` | post | `x/p.api` | serve function |", "gpu-agent/generated/ has no serve function of cuA"),
            ("| `cuB` | call | `x/p.api` (`vcudaB`), `shim/b.c` | wire struct |", None)):
        sources = {"x/p.api": "post 7 cuA(int a);\ncall cuB(int b);", "shim/a.c": "hand_cuA(int)", "shim/b.c": "send_vcudaB(b)",
                   "shim/generated/s.c": "cuA(int a)", "protocol/generated/w.h": "struct wire_cuA { } struct wire_vcudaB {"}
        checked = Documents({"docs/HACKING.md": row}, sources, (), sources)
        checked.check("docs/HACKING.md")
        if bool(wanted) != bool(checked.faults) or wanted and wanted not in checked.faults[0]:
            sys.exit(f"docs.py: {row!r}: wanted {wanted}, got {checked.faults}")
    coverage = "| libcuda.so.1 | 5 | 3 | 2 |\n| libcudart.so.12 and libcudart.so.13 | 7 | 6 | 1 |"
    for text, faults in (("2 of the 5 functions of the driver, 1 of the 7 of the runtime", 0),
                         ("2 of the 5 functions of the driver, 2 of the 7 of the runtime", 1), ("", 1)):
        checked = Documents({"README.md": text, "docs/COVERAGE.md": coverage}, files)
        checked.counts()
        if len(checked.faults) != faults:
            sys.exit(f"docs.py: {text!r} as {coverage!r}: {checked.faults}")
    checked = Documents({}, files)
    checked.comments("a.c", "/* ring.c, engine/ring.c, cuda.h */ \"gone.c\"\n/* See\n * gone.c. */")
    if checked.faults != ["a.c:3: no file has the name gone.c"]:
        sys.exit(f"docs.py: a comment: {checked.faults}")
    if rooms_of_tests(["tests/unit/unit.mk", "tests/unit/a.c", "tests/unit/shim/b.c"]) != (
            ["tests/unit/shim"], [("tests/unit/a.c", 0, "a test of tests/unit lies in the room of what it tests")]):
        sys.exit("docs.py: a unit test outside of all rooms is not found")
    print(f"docs: {len(cases) + 11} texts, each judged right")


def git(*words):
    return subprocess.run(["git", *words], cwd=TOP, check=True, capture_output=True,
                          text=True).stdout.split("\n")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def main():
    if sys.argv[1:] == ["--self"]:
        return self_test()
    files = [path for path in git("ls-files", "-co", "--exclude-standard")
             if path and os.path.lexists(os.path.join(TOP, path))]
    code = {path: read(path) for path in files
            if path.endswith((".c", ".h")) and path.split("/")[0] in ROOMS}
    words = {word for path in files if path.startswith("deploy/helm/") or path.endswith(".api")
             for word in re.findall(r"\w+", read(path))}
    words.update(word for text in code.values() for word in re.findall(r"\w+", text))
    texts = {path: read(path) for path in files if path.endswith(".md")}
    tests = {path: read(path) for path in files
             if path.startswith("tests/") and path.endswith((".c", ".cu", ".py")) or path.endswith(".api")}
    documents = Documents(texts, files, words, code | tests)
    for document in sorted(texts):
        documents.check(document)
    documents.counts()
    for path in sorted(code):
        documents.comments(path, code[path])
    folders, strays = rooms_of_tests(files)
    for stray in strays:
        documents.fault(*stray)
    for room in rooms() + folders:
        if f"{room}/README.md" not in texts:
            documents.fault(room, 0, "the room has no README.md")
    for fault in documents.faults:
        print(fault)
    print(f"docs: {len(texts)} documents, {len(documents.faults)} faults")
    sys.exit(1 if documents.faults or not texts else 0)


if __name__ == "__main__":
    main()
