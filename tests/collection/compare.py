# SPDX-License-Identifier: Apache-2.0
"""Whether a program said the same twice: texts without what is different in each run, its times and addresses."""
import collections
import difflib
import re

TIME = re.compile(
    r"\btim(?:e|er|es|ed|ing|ings)\b|_time|seconds?\b|m?secs?\b|\b[munµ]s\b|\d *[munµ]?s\b|/ ?s(?:ec)?\b|"
    r"flop|bandwidth|throughput|speed|\brates?\b|\bfps\b|elapsed|duration|latency|overhead|\btook\b|"
    r"per sec|perf|[GMK]i?[Bb]p?s\b|GUPS?|clock|cycle|[KMG]Hz", re.I)
NUMBER = re.compile(r"(?<![A-Za-z_0-9.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.I)
DIGITS = re.compile(r"\d+")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b", re.I)


def plain(text):
    """Its lines, empty ones left out, with # for an address, and for each number beside a word of time."""
    lines = []
    for line in text.splitlines():
        line = ADDRESS.sub("#", " ".join(line.split()))
        if line:
            lines.append(NUMBER.sub("#", line) if TIME.search(line) else line)
    return lines


def shape(line):
    """Without digits, a name's too: programs name shared memory by their process."""
    return DIGITS.sub("#", NUMBER.sub("#", line))


def runs(one, other):
    """(whether they are alike, lines of one, lines of the other), from the first line to the last."""
    if len(one) == len(other):
        for a, b in zip(one, other):
            yield a == b, [a], [b]
        return
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        yield tag == "equal", one[a:b], other[c:d]


def unlike(natives, remote):
    """What a REMOTE text says that this program does not say natively, by the texts of several native runs,
    for people; None: nothing."""
    natives, remote = [plain(text) for text in natives], plain(remote)
    if any(sorted(native) == sorted(remote) for native in natives):
        return None
    stable, varying = natives[0], collections.Counter()
    for other in natives[1:]:
        kept = []
        for alike, ours, theirs in runs(stable, other):
            if alike:
                kept += ours
            else:
                varying.update(shape(line) for line in ours + theirs)
        stable = kept
    at = 0
    for line in remote:
        if at < len(stable) and line == stable[at]:
            at += 1
        elif not varying[shape(line)]:
            expected = stable[at] if at < len(stable) else "(no more)"
            return f"natively {expected[:90]!r}, remotely {line[:90]!r}"
    return None if at == len(stable) else f"natively {stable[at][:90]!r}, not remotely"


def same(natives, remote):
    return unlike(natives, remote) is None
