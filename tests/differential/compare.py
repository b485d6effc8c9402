#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two folders of traces (trace.cu) line by line.

    tests/differential/compare.py NATIVE OTHER [--show N]

Of a sequence that ends early natively (NVIDIA's driver does not survive every wrong call) the
other one's first lines are compared.  After a difference the two go on in different states, so
that a later one may follow from it: what names a thing that only one of them has made or changed (class Doubt)
is counted with its reason, and so is a call that has other arguments.  declared.txt has the differences that are
meant, each with its reason.  Any other is an error.
"""
import argparse
import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def lines_of(path):
    """Its whole lines, and the beginning of one that did not come to its end."""
    with open(path, errors="replace") as file:
        lines = file.read().split("\n")
    rest = lines.pop()
    return (lines[:-1], None) if lines and lines[-1] == "end" else (lines, rest)


def function_of(line):
    match = re.match(r"T\d (\w+)", line)
    return match[1] if match else line[:40]


def answer_of(line):
    return line.partition(") = ")[2]


def status_of(line):
    return answer_of(line).split(" ")[0]


def call_of(line):
    return line.partition(") = ")[0]


WHERE = re.compile(r"(software|no_slab): ")
NAME = re.compile(r"\b([a-z][a-z-]*)#(\d+)")
OWN = re.compile(r"0 -> (memory#\d+)(?![+\d])")
MAKES = re.compile(r"Add\w+Node|Create|Clone|Instantiate|Alloc|EndCapture")
SUMS = re.compile(r"T\d cu(da)?(Device)?(GetGraphMemAttribute|MemPoolGetAttribute)\(")
MADE = re.compile(r"0 -> ([a-z]+)#(\d+)")  # the answer of a call that makes one thing


class Names:
    """Which name of one side is which of the other: a thing has the number that it was first seen with, so that
    after something that only one side made the numbers are others for the same things."""

    def __init__(self):
        self.other, self.native = {}, {}

    def same(self, one, two):
        """Whether ONE and TWO, an answer or a call of each side, say the same but for how things are numbered.
        What is seen for the first time on both sides is the same thing from then on."""
        pairs = list(zip(NAME.findall(one), NAME.findall(two)))
        if NAME.sub("#", one) != NAME.sub("#", two):
            return False
        if any(self.other.get(a, b) != b or self.native.get(b, a) != a or a[0] != b[0] for a, b in pairs):
            return False
        for a, b in pairs:
            self.other[a], self.native[b] = b, a
        return True


    def reused(self, one, two):
        """A driver may make a thing at the address of one that is gone, which is named as that was; the other has
        not."""
        made = [MADE.fullmatch(answer) for answer in (one, two)]
        if not all(made):
            return
        a, b = (match.groups() for match in made)
        if (a in self.other) != (b in self.native):
            for there, back, name in ((self.other, self.native, a), (self.native, self.other, b)):
                back.pop(there.pop(name, None), None)


class Doubt:
    """What of a sequence's state is known to differ for a reason that is declared: what differs of that later
    follows from it."""

    BEGUN = {"event": 2}  # those that trace.cu begins with have their numbers without an answer
    HOLDERS = {"graph", "node", "exec", "pool"}  # of state that a call changes without a name for it
    BROKEN = re.compile(r"T\d cudaGraphKernelNodeSetParams\((node#\d+), \{add_one .*\) = 1\b")
    RESETS = re.compile(r"T\d cuDevicePrimaryCtxReset(?:_v2)?\(0\) = 0\b")
    CAPTURES = re.compile(r"T\d cu(?:da)?StreamBeginCaptureToGraph\((\S+), (graph#\d+),.*\) = 0\b")
    LOSES = re.compile(r"T\d cu(?:da)?Stream(?:Destroy(?:_v2)?\((stream#\d+)\) = 0|EndCapture\((\S+), .*\) = 901)\b")
    NODES = re.compile(r"T\d cu(?:da)?GraphAdd\w*\(\S+, (graph#\d+),.*\) = 0 -> (node#\d+)")
    # Such allocations lie side by side natively, and a range may go on in the next.
    SMALL = re.compile(r"T\d cu(?:MemAlloc|daMalloc)Managed\(&, (\d+), \d+\) = 0 -> (managed#\d+)$")
    SMALL_BYTES = 65536
    # What an address is: all that is reserved, what a pool has got back, and a variable.
    BECOMES = (("reserved", re.compile(r"T\d cuMemAddressReserve\(.* = 0 -> (memory#\d+)$")),
               ("freed", re.compile(r"T\d cu(?:da)?(?:Mem)?FreeAsync\((memory#\d+), .* = 0$")),
               ("variable", re.compile(r"T\d cu(?:da)?\w*(?:GetGlobal|GetSymbolAddress)\w*\(.* = 0 -> (memory#\d+)")),
               ("", re.compile(r"T\d cuMemMap\((memory#\d+), .* = 0$")),
               ("", re.compile(r"T\d cu(?:da)?(?:Mem)?(?:Alloc|Malloc)\w*\(.* = 0 -> (memory#\d+)\b")))
    # The runtime's own library, by a kernel of it, and a program that unloads that.
    OWN_KERNEL = re.compile(r"T\d cudaGetKernel\(&, \w+\) = 0 -> (kernel#\d+)")
    OWN_LIBRARY = re.compile(r"T\d cuKernelGetLibrary\(&, (kernel#\d+)\) = 0 -> (library#\d+)")
    UNLOADS = re.compile(r"T\d cu(?:da)?LibraryUnload\((library#\d+)\) = 0\b")
    OWN_NAMES = re.compile(r"\b(add_one|add_shared|table|counter)\b")
    ENDS = re.compile(r"T\d cu(?:da)?StreamEndCapture\((stream#\d+),.*-> (graph#\d+)")

    # Of what the sequence begins with: natively another process may have had all of the GPU's memory then.
    BEGUN_WITH = {"context", "stream", "event", "memory", "graph", "array", "module", "function", "library", "kernel"}
    CAPTURING = {"900", "901", "906"}

    def __init__(self):
        self.faulted = self.reset = self.began_less = self.other_captures = False
        self.equal = True  # no answer has differed yet
        self.doubtful = [set(), set()]  # names, natively and here
        self.captures = [{}, {}]  # {stream: the graph that it captures into}
        self.answered, self.broken, self.lost, self.small = set(), set(), set(), set()
        self.inside = {}  # {node: its graph}, natively
        self.own, self.unloaded, self.memory = set(), False, {}

    def called(self, one):
        """The native call as declared.txt names it: gone-event#5 is a handle of one that was destroyed before,
        half-node#1 a kernel's node that could not be set to other parameters, lost-node#1 one of a graph that went
        with the stream that captured into it, small-managed#1 an allocation beside others, unloaded-add_one what was in
        the runtime's own library."""
        call = one.partition(") = ")[0][3:] + ")"
        for kind, number in sorted(set(NAME.findall(call))):
            name = f"{kind}#{number}"
            if int(number) > self.BEGUN.get(kind, int(number)) and name not in self.answered:
                call = re.sub(rf"\b{name}\b", f"gone-{name}", call)
            if name in self.broken:
                call = re.sub(rf"\b{name}\b", f"half-{name}", call)
            if name in self.small:
                call = re.sub(rf"\b{name}\b", f"small-{name}", call)
            if self.inside.get(name) in self.lost:
                call = re.sub(rf"\b{name}\b", f"lost-{name}", call)
        return self.OWN_NAMES.sub(r"unloaded-\1", call) if self.unloaded else call

    def placed(self, one):
        """The native call by what its addresses are: reserved-memory#1 where nothing was mapped, freed-memory#1 what
        went to a pool, variable-memory#1 a variable's."""
        return re.sub(r"\bmemory#\d+", lambda name: "-".join(filter(None, (self.memory.get(name[0]), name[0]))),
                      call_of(one)[3:] + ")")

    def follows(self, lines):
        """Why the two LINES may differ, of what is known already."""
        if self.faulted:
            return "behind a fault: natively the context is gone"
        if self.began_less:
            return "natively the GPU was full when the sequence began: it has not all that it begins with"
        if self.other_captures and self.CAPTURING & {status_of(line) for line in lines}:
            return "follows from a declared difference: another stream captures"
        if self.reset and "709" in (status_of(line) for line in lines):
            return "how many references to the primary context its reset leaves"
        if any("memory#" in name for name in set.union(*self.doubtful)) and SUMS.match(lines[0]):
            return "follows from a declared difference: sums of memory"
        for line, doubtful in zip(lines, self.doubtful):
            if any(f"{kind}#{number}" in doubtful for kind, number in NAME.findall(call_of(line))):
                return "follows from a declared difference of the same graph, node, pool or address"
        return None

    def other_call(self, lines):
        """The two LINES have other arguments."""
        kinds = [collections.Counter(kind for kind, _ in NAME.findall(call_of(line))) for line in lines]
        self.began_less |= self.equal and any(kind in self.BEGUN_WITH for kind in kinds[1] - kinds[0])
        self.other_captures |= "BeginCapture" in lines[0] and "0" in map(status_of, lines)

    def differs(self, lines, follows):
        """That the two LINES do was declared, or FOLLOWS: what they name is in doubt, if only one side did it."""
        if len({status_of(line) for line in lines}) == 1 and not follows:
            # Memory that has a name of its own on one side only: the numbers of others are not the same any more.
            own = [OWN.match(answer_of(line)) for line in lines]
            for match, doubtful in zip(own, self.doubtful):
                if match and not all(own):
                    doubtful.add(match[1])
            return
        if any(f"{kind}#{number}" in self.small for kind, number in NAME.findall(call_of(lines[0]))):
            for doubtful in self.doubtful:
                doubtful |= self.small
        for line, doubtful, captures in zip(lines, self.doubtful, self.captures):
            maps = {"memory"} if function_of(line) == "cuMemMap" else set()
            for part, kinds in ((call_of(line), self.HOLDERS | maps), (answer_of(line), None)):
                for kind, number in NAME.findall(part):
                    name = f"{kind}#{number}"
                    if kinds is None or kind in kinds:
                        doubtful.add(name)
                    elif name in captures:
                        doubtful.add(captures[name])

    def seen(self, lines):
        """After the comparison of LINES, the native one first."""
        self.faulted |= status_of(lines[0]) == "700"
        self.reset |= self.RESETS.match(lines[0]) is not None
        self.answered |= {f"{kind}#{number}" for kind, number in NAME.findall(answer_of(lines[0]))}
        for kind, becomes in self.BECOMES:
            if match := becomes.match(lines[0]):
                self.memory[match[1]] = kind
        if match := self.OWN_KERNEL.match(lines[0]):
            self.own.add(match[1])
        if (match := self.OWN_LIBRARY.match(lines[0])) and match[1] in self.own:
            self.own.add(match[2])
        if match := self.UNLOADS.match(lines[0]):
            self.unloaded |= match[1] in self.own
        if match := self.NODES.match(lines[0]):
            self.inside[match[2]] = match[1]
        if match := self.LOSES.match(lines[0]):
            self.lost.update({self.captures[0].get(match[1] or match[2])} - {None})
        if match := self.BROKEN.match(lines[0]):
            self.broken.add(match[1])
        if (match := self.SMALL.match(lines[0])) and int(match[1]) < self.SMALL_BYTES:
            self.small.add(match[2])
        for line, doubtful, captures in zip(lines, self.doubtful, self.captures):
            if any(f"{kind}#{number}" in doubtful for kind, number in NAME.findall(call_of(line))):
                doubtful.update(f"{kind}#{number}" for kind, number in NAME.findall(answer_of(line))
                                if kind in self.HOLDERS)
            if match := self.CAPTURES.match(line):
                captures[match[1]] = match[2]
            if match := self.ENDS.match(line):
                captures.pop(match[1], None)


def compared(left, right, declared):
    """For each line of both: its native text, its other answer, and "", the reason why it may differ, "others"
    (another call: its arguments follow from a difference) or "different"."""
    names, doubt = Names(), Doubt()
    for one, two in zip(left, right):
        called = names.same(call_of(one), call_of(two))
        if MAKES.search(function_of(one)):
            names.reused(answer_of(one), answer_of(two))
        if not called:
            doubt.other_call((one, two))
        verdict = ""
        if not names.same(answer_of(one), answer_of(two)):
            doubt.equal = False
            pair = f"{answer_of(one)} <> {answer_of(two)}"
            calls = (function_of(one), doubt.called(one), doubt.placed(one))
            verdict = next((reason for which, pattern, reason in declared
                            if any(map(which.fullmatch, calls)) and pattern.search(pair)), None)
            follows = doubt.follows((one, two)) or (None if called else "others")
            verdict = verdict or follows or "different"
            if verdict != "different":
                doubt.differs((one, two), follows)
        doubt.seen((one, two))
        yield one, answer_of(two), verdict


def declarations(path, holds):
    """Those that hold: a reason that begins with a word of WHERE ("software: ") is of that agent's driver, or with
    that optimisation off, only."""
    with open(path) as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and line[0] != "#"]
    return [(re.compile(name), re.compile(pattern), reason) for name, pattern, reason in rows
            if not (match := WHERE.match(reason)) or match[1] in holds]


def report(native, other, declared, show=0, first=1, count=0, holds=("software",)):
    """Prints what differs in COUNT seeds (0: all) from FIRST on; 1 if a call does undeclared, or a sequence ends
    early. HOLDS: see declarations()."""
    declared = declarations(declared, holds)
    total, same = collections.Counter(), collections.Counter()
    found, reasons, ends = collections.defaultdict(list), collections.Counter(), []
    others = 0
    for seed in sorted((name for name in os.listdir(native)
                        if int(name) >= first and (not count or int(name) < first + count)), key=int):
        path = os.path.join(other, seed)
        left, _ = lines_of(os.path.join(native, seed))
        right, unfinished = lines_of(path) if os.path.exists(path) else ([], "no trace at all")
        if unfinished is not None and len(right) < len(left):
            ends.append(f"seed {seed} ended in its call {len(right) + 1}: {unfinished[:150]}")
        for number, (one, two, verdict) in enumerate(compared(left, right, declared), 1):
            name = function_of(one)
            total[name] += 1
            if verdict == "":
                same[name] += 1
            elif verdict == "others":
                others += 1
            elif verdict == "different":
                found[name].append((seed, number, one, two))
            else:
                reasons[verdict] += 1
    for name, cases in sorted(found.items(), key=lambda case: -len(case[1])) if show else ():
        print(f"{name}: {len(cases)} of {total[name]}")
        for seed, number, one, two in cases[:show]:
            call, _, answer = one.partition(") = ")
            print(f"    {seed}:{number} {call[:180]})\n        native {answer[:120]}\n        other  {two[:120]}")
    for end in ends:
        print(end)
    for reason, times in reasons.most_common():
        print(f"declared, {times}: {reason}")
    calls, equal = sum(total.values()), sum(same.values())
    print(f"{calls} calls of {len(total)} functions: {equal} the same ({100 * equal / max(1, calls):.1f} %), "
          f"{sum(reasons.values())} declared, {others} of other arguments, "
          f"{sum(map(len, found.values()))} different, in {len(found)} functions; {len(ends)} ended early")
    return 1 if found or ends else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("native")
    parser.add_argument("other")
    parser.add_argument("--show", type=int, default=2, help="examples of each function")
    options = parser.parse_args()
    return report(options.native, options.other, os.path.join(HERE, "declared.txt"), options.show)


if __name__ == "__main__":
    sys.exit(main())
