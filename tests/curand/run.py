#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuRAND through the whole stack on the software GPU, for both ABIs: its numbers are those that an
H200 gave (h200.txt), its statuses too, on the device and on the host.

    tests/curand/run.py [--build FOLDER] [--only NAME | --list]
"""
import argparse
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
# Types and orderings whose bits the software GPU has from elsewhere: their statuses are compared.
OTHER_TYPES = ("141", "142", "202", "204")
OTHER_ORDERINGS = ("104",)
DIMENSIONS = 100  # of published direction numbers
TESTS = {f"{abi}-{way}": f"numbers and statuses of cuRAND {where} are an H200's, CUDA {abi}"
         for abi in (12, 13) for way, where in (("device", "on the device"), ("host", "on the host"))}
# What a generator on the host refuses, and one on the device does not.
HOST_REFUSES = re.compile("ordering=104|type=142 ordering=100|^refusals")
VERSION = 10400  # of the software GPU's library; the front stands for another


def read(lines):
    """{case: [its words]} of record's lines."""
    found = {}
    for line in lines:
        case, bar, rest = line.partition("|")
        if bar:
            found.setdefault(case.split(None, 1)[1].strip(), []).append(rest.split())
    return found


def own_bits(case):
    """Whether the numbers of a case are the software GPU's own."""
    said = dict(word.split("=") for word in case.split() if "=" in word)
    return said.get("type") in OTHER_TYPES or \
        (said.get("ordering") in OTHER_ORDERINGS and said.get("type") == "101") or \
        int(said.get("dimensions", 1)) > DIMENSIONS


def number(word):
    digits = word.split("=")[1]
    return struct.unpack(">d" if len(digits) == 16 else ">f", bytes.fromhex(digits))[0]


def near(mine, theirs, call):
    """Rounding: of logarithms and sines, and of what a library's single precision makes of them."""
    a, b = number(mine), number(theirs)
    return abs(a - b) <= (1e-12 if call in "NL" else 1e-5) * max(1, abs(b))


def differences(case, mine, theirs):
    out, call, own = [], "", own_bits(case)
    mine = {at: word for at, word in enumerate(mine)}
    if not own:
        mine = {at: w for at, w in enumerate(exact_words(mine.values()))}
    if own:
        strip = [w for w in mine.values() if "=" not in w]
        mine, theirs = dict(enumerate(strip)), [w for w in theirs if "=" not in w]
    for at, want in enumerate(theirs):
        got = mine.get(at, "nothing")
        match = re.match(r"([uUfFnNlLp])\d+:\d+", want)
        call = match.group(1) if match else call
        if match and (own or call in "nNlLp"):
            right = got.split(":")[:2] == want.split(":")[:2]
        elif "=" in want:
            right = "=" in got and near(got, want, call)
        else:
            right = got == want
        if not right:
            out.append(f"{case}: {got}, not {want}")
    return out


def exact_words(words):
    """Without the numbers that h200.txt has only the hash of, as reduce.py leaves them out."""
    exact = False
    for word in words:
        if re.match(r"[uUfFnNlLp]\d+:\d", word):
            exact = word[0] not in "nNlL"
        if not (exact and re.match(r"\d+=", word)):
            yield word


def check(build, name):
    abi, way = name.split("-")
    with open(os.path.join(HERE, "h200.txt"), encoding="utf-8") as file:
        theirs = read(line for line in file if not line.startswith("#"))
    got = subprocess.run([f"{build}/bin/vcuda", "run", "--software", "--",
                          f"{build}/curand/{abi}/record", way], capture_output=True, text=True,
                         timeout=110)
    mine = read(got.stdout.splitlines())
    wrong, compared = [], 0
    if f"version 0:{VERSION} " not in got.stdout:
        wrong.append(f"curandGetVersion does not tell the agent's library's, {VERSION}")
    for case, rows in theirs.items():
        if way == "host" and HOST_REFUSES.search(case):
            continue
        for i, row in enumerate(rows):
            compared += 1
            if case not in mine or i >= len(mine[case]):
                wrong.append(f"{case}: nothing")
            else:
                wrong += differences(case, mine[case][i], row)
    if got.returncode or compared < 500:
        wrong.append(f"status {got.returncode}, {compared} cases: {got.stderr.strip()[-200:]}")
    return wrong, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--only", choices=sorted(TESTS))
    parser.add_argument("--list", action="store_true", help="the tests, and what each shows")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name}\t{what}\ttests/curand/record.c" for name, what in TESTS.items()))
        return 0
    failed = 0
    for name in [options.only] if options.only else TESTS:
        wrong, compared = check(os.path.abspath(options.build), name)
        failed += bool(wrong)
        print(f"{'fail' if wrong else 'pass'}  {name:20}{compared} cases")
        print("".join(f"  {line}\n" for line in wrong[:5]), end="", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
