#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two folders of traces (trace.cu) line by line.

    tests/differential/compare.py NATIVE OTHER [--show N]

Of a sequence that ends early natively (NVIDIA's driver does not survive every wrong call) the
other one's first lines are compared.  After a difference the two go on in different states, so
that a later one may follow from it: a call that has other arguments for that reason (a handle that only
one of them was given) is counted, and not compared.  declared.txt has the differences that are meant, each with
its reason; settled.txt the functions that are as natively in nine calls of ten: the tenth follows
from another function's difference.
"""
import argparse
import collections
import os
import re
import sys

SETTLED = 0.9  # of a settled function's calls are the same

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


def call_of(line):
    return line.partition(") = ")[0]


NAME = re.compile(r"\b([a-z]+)#(\d+)")


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


def declarations(path, driver):
    """Those of the agent's DRIVER: a reason that begins with "software: " is of the software GPU only."""
    with open(path) as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and line[0] != "#"]
    return [(re.compile(name), re.compile(pattern), reason) for name, pattern, reason in rows
            if driver == "software" or not reason.startswith("software: ")]


def report(native, other, declared, settled=(), show=0, count=0, driver="software"):
    """Prints what differs; 1 if a settled function does too often, or a sequence ends early."""
    declared = declarations(declared, driver)
    total, same = collections.Counter(), collections.Counter()
    found, reasons, ends = collections.defaultdict(list), collections.Counter(), []
    others = 0
    for seed in sorted(os.listdir(native), key=int)[:count or None]:
        path = os.path.join(other, seed)
        left, _ = lines_of(os.path.join(native, seed))
        right, unfinished = lines_of(path) if os.path.exists(path) else ([], "no trace at all")
        if unfinished is not None and len(right) < len(left):
            ends.append(f"seed {seed} ended in its call {len(right) + 1}: {unfinished[:150]}")
        names = Names()
        for number, (one, two) in enumerate(zip(left, right), 1):
            name = function_of(one)
            total[name] += 1
            called = names.same(call_of(one), call_of(two))
            if names.same(answer_of(one), answer_of(two)):
                same[name] += 1
                continue
            pair = f"{answer_of(one)} <> {answer_of(two)}"
            calls = (name, f"{call_of(one)[3:]})")
            reason = next((reason for which, pattern, reason in declared
                           if any(map(which.fullmatch, calls)) and pattern.search(pair)), None)
            if reason:
                reasons[reason] += 1
            elif not called:
                others += 1
            else:
                found[name].append((seed, number, one, answer_of(two)))
    for name, cases in sorted(found.items(), key=lambda case: -len(case[1])) if show else ():
        print(f"{name}: {len(cases)} of {total[name]}")
        for seed, number, one, two in cases[:show]:
            call, _, answer = one.partition(") = ")
            print(f"    {seed}:{number} {call[:180]})\n        native {answer[:120]}\n        other  {two[:120]}")
    for end in ends:
        print(end)
    for reason, times in reasons.most_common():
        print(f"declared, {times}: {reason}")
    broken = sorted(name for name in set(found) & set(settled)
                    if len(found[name]) > (1 - SETTLED) * total[name])
    for name in broken:
        seed, number, one, two = found[name][0]
        print(f"settled, but differs in {len(found[name])} of {total[name]}: {name}: "
              f"{seed}:{number} {one[:200]}, not {two[:100]}")
    calls, equal = sum(total.values()), sum(same.values())
    print(f"{calls} calls of {len(total)} functions: {equal} the same ({100 * equal / max(1, calls):.1f} %), "
          f"{sum(reasons.values())} declared, {others} of other arguments, "
          f"{sum(map(len, found.values()))} different, in {len(found)} functions; {len(broken)} of {len(settled)} settled ones differ; {len(ends)} ended early")
    return 1 if broken or ends else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("native")
    parser.add_argument("other")
    parser.add_argument("--show", type=int, default=2, help="examples of each function")
    options = parser.parse_args()
    return report(options.native, options.other, os.path.join(HERE, "declared.txt"), (), options.show)


if __name__ == "__main__":
    sys.exit(main())
