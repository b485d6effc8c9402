#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names and comments have the field's words: finds those of ours that were given up for one.

A word that stands in a source where no row of ALLOWED excuses it is a fault, named with its line; so is a
row that nothing needs any more.  docs/GLOSSARY.md has the words of ours that stay.  Exit status 1 with a fault.

    tools/words.py           checks
    tools/words.py --test    shows that it finds each word
"""
import os
import re
import subprocess
import sys

# word: what it looks like where it is meant, and the field's word.  Most are ordinary English, too: then only
# a form that ordinary English has not is looked for.
WORDS = {
    "landing": (r"\b[Ll]anding(s|_\w+)?\b", "bounce buffer"),
    "lie": (r"\b(?:[Aa]|[Tt]he|[Ee]ach|[Ee]very|[Nn]o) lies?\b", "protocol violation"),
    "told": (r"\bstatic [\w ]*\b(?:said|told|missing|logged)\s*[;=,[]", "logged_once"),
    "give": (r"\b[a-z]\w*_give\s*\(", "free, put, close or end, as its pair says"),
    "settle": (r"\b[Ss]ettle[ds]?\b", "drain"),
    "seeds": (r"\b(?:[Ss]eeds'|[Tt]he seed's?\b)", "legacy command line"),
    "utilities": (r"\butilities\b|\bUTILITIES_|\btest-utilities\b", "loader"),
    "pulse": (r"\bpulses?\b|\w_pulse\b", "heartbeat"),
    "holes": (r"\bholes?_\w+\s*\(|\bstruct holes?\b", "free extents"),
    "promise": (r"\bpromise_\w+\s*\(|\w_promises?\b", "reserve"),
    "lane": (r"\blanes?\b", "stripe"),
    "refusing": (r"\brefusing\b", "unserved"),
    "riddles": (r"\bscratch_of_the_poor\b|\bgraph_any\b|\bcublaslt_made\b", "what it is"),
}

# What runs at users.  Elsewhere, and in softgpu/, a lane is a warp's; tests keep notes of what they were told, and lie.
PRODUCTS = ("command/", "common/", "gpu-agent/", "protocol/", "python/", "shim/", "sidecar/", "transport/", "windows/")
ONLY_IN = {"lane": PRODUCTS, "told": (*PRODUCTS, "softgpu/"), "lie": (*PRODUCTS, "softgpu/"), "seeds": (*PRODUCTS, "softgpu/")}
STRING = re.compile(r'"(?:\\.|[^"\\])*"')  # of C: what it says has its own readers
# (word, file or folder): why it stands there.
LANE = "a stripe's two sockets to agent-uploads: docs/GLOSSARY.md"
ALLOWED = {
    ("lane", "gpu-agent/uploads"): LANE,
    ("lane", "gpu-agent/front/uploads"): LANE,
    ("lane", "gpu-agent/handoff.h"): LANE,
    ("lane", "gpu-agent/worker/staging/"): LANE,
    ("lane", "gpu-agent/worker/worker_state.h"): LANE,
    ("lane", "python/vcuda/dlpack.py"): "DLPack's, of a vector type",
    ("landing", "tests/peer/"): "the sidecar's flag keeps its older form, which is tried",
}


def patterns():
    return {word: re.compile(looks) for word, (looks, _) in WORDS.items()}


def sources(top):
    """(file, its lines) of all that people write."""
    got = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.py", "*.lua", "*.mk", "*.cu", "*.pml", "Makefile"], cwd=top,
                         check=True, capture_output=True, text=True)
    for path in got.stdout.split():
        if "/generated/" in path or path == "tools/words.py":
            continue
        with open(os.path.join(top, path), encoding="utf-8") as file:
            yield path, file.read().splitlines()


def meant(path, line):
    """What of the line is names and comments."""
    return STRING.sub('""', line) if path.endswith((".c", ".h")) else line


def faults_of(found):
    """The faults of (file, lines)…, and how many files there were."""
    faults, excused, files = [], set(), 0
    looks = patterns()
    for path, lines in found:
        files += 1
        for word, pattern in looks.items():
            if not path.startswith(ONLY_IN.get(word, "")):
                continue
            row = next(((w, place) for w, place in ALLOWED if w == word and path.startswith(place)), None)
            for number, line in enumerate(lines, 1):
                match = pattern.search(meant(path, line))
                if match and row:
                    excused.add(row)
                elif match:
                    faults.append(f"{path}:{number}: {match[0]}: {WORDS[word][1]}")
    return faults + [f"tools/words.py: {place} has no {word}: take it out"
                     for word, place in ALLOWED if (word, place) not in excused], files


PLANTED = {
    "landing": "/* a landing place */", "lie": "/* a lie of the peer's */", "told": "\tstatic bool told;",
    "give": "void pool_give(struct pool *pool);", "settle": "\tsettle(name);", "seeds": "/* the seeds' form */",
    "utilities": "UTILITIES_LIB :=", "pulse": "struct shim_pulse;", "holes": "\tholes_find(all);", "promise": "\tpromise_keep(w);",
    "lane": "\tlane->fd = -1;", "refusing": "# refusing", "riddles": "\tgraph_any(graph);",
}


def test():
    """Each word is found, and none in what is not meant."""
    assert PLANTED.keys() == WORDS.keys(), "a word without its example"
    for word, line in PLANTED.items():
        if not any(fault.startswith("shim/new.c:1:") and fault.endswith(WORDS[word][1]) for fault in faults_of([("shim/new.c", [line])])[0]):
            sys.exit(f"words.py --test: {word} is not found")
    plain = ["/* bytes that lie there; who is told so */", "\tsession_give_up(s);", "\tuint64_t seed;", "/* a hole of the file */",
             "\tlog_warn(\"lane.broken\");"]
    if any(fault.startswith("shim/new.c") for fault in faults_of([("shim/new.c", plain)])[0]):
        sys.exit("words.py --test: ordinary English is a fault")
    print(f"words: {len(WORDS)} are found")


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    faults, files = faults_of(sources(top))
    if not files:
        sys.exit("words.py: found no files")
    for fault in faults:
        print(fault)
    print(f"words: {files} files, {len(WORDS)} words that were given up, {len(faults)} faults")
    if not faults and "--test" in sys.argv[1:]:
        test()
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
