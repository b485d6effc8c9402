#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/curand/h200.txt of what record printed on a GPU: without what run.py does not look at.

    reduce.py <record.txt >h200.txt
"""
import re
import sys


def main():
    exact = False
    for line in sys.stdin:
        if re.search(r"type=(100|200) |^table|^version", line):
            continue  # other names of types that are there; the software GPU's own numbers
        words = []
        for word in line.split():
            call = re.match(r"[uUfFnNlLp]\d+:\d", word)
            if call:
                exact = word[0] not in "nNlL"
            if re.match(r"\d+=", word) and exact:
                continue  # the hash of all of them is compared
            words.append(word)
        print(" ".join(words))


if __name__ == "__main__":
    main()
