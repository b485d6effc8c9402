#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""$(LAUNCHER) of a program of a collection (run.py): runs it on the software GPU with smaller numbers
among its arguments, for so long, and appends what came of it to COLLECTION_RUNS."""
import json
import os
import re
import signal
import subprocess
import sys

MOST_RUNS = 2
REPEATS = re.compile(r"rep|iter|step|loop|times|trial|runs|count", re.I)
USAGE = re.compile(r'[Uu]sage:?[^<"]*((?:<[^>"]+>|\[[^\]"]+\])[^"]*)"')
SOURCE = re.compile(r"\.(cu|cpp|cc|c|h|cuh|hpp)$")
# The least number that each is for, and what it is divided by.
SMALLER = {
    "small": ((1 << 20, 128), (1 << 16, 16), (4096, 8), (2000, 4)),
    "least": ((1 << 20, 2048), (1 << 16, 64), (4096, 32), (1000, 16), (128, 4)),
    "given": (),
}


def names_of_arguments():
    """What the program's own usage calls them."""
    for name in sorted(os.listdir(".")):
        if SOURCE.search(name):
            with open(name, encoding="utf-8", errors="replace") as file:
                usage = USAGE.search(file.read())
            if usage:
                return [a or b for a, b in re.findall(r"<([^>]+)>|\[([^\]]+)\]", usage[1])]
    return []


def smaller(arguments, sizes):
    names = names_of_arguments()
    known = len(names) == len(arguments)
    result = list(arguments)
    for i, argument in enumerate(arguments):
        if not argument.isdigit():
            continue
        number = int(argument)
        last = i == len(arguments) - 1 and number <= 100000
        if REPEATS.search(names[i]) if known else last:
            result[i] = str(min(number, 1))
            continue
        for least, divisor in SMALLER[sizes]:
            if number >= least:
                result[i] = str(number // divisor)
                break
    return result


def main():
    program, *arguments = sys.argv[1:]
    runs, sizes = os.environ["COLLECTION_RUNS"], os.environ["COLLECTION_SIZES"]
    if os.path.exists(runs):
        with open(runs, encoding="utf-8") as file:
            if len(file.readlines()) >= MOST_RUNS:
                return
    arguments = smaller(arguments, sizes)
    env = {name: value for name, value in os.environ.items()
           if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "LAUNCHER")}
    command = [os.environ["COLLECTION_VCUDA"], "run", "--software", "--", program, *arguments]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as child:
        try:
            text = child.communicate(timeout=float(os.environ["COLLECTION_LIMIT"]))[0]
            status = child.returncode
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            text, status = child.communicate()[0], None
    with open(runs, "a", encoding="utf-8") as file:
        json.dump({"arguments": arguments, "status": status,
                   "text": text[-8000:].decode(errors="replace")}, file)
        file.write("\n")


main()
