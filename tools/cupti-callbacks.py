#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes protocol/api/cupti_callbacks.txt: the numbers that CUPTI gives to the calls of the driver and of the
runtime, out of NVIDIA's headers as tools/fetch_headers.py has put them into CACHE.

    tools/cupti-callbacks.py CACHE

Run it when CUPTI gets a new version; what it writes is committed, so that nobody else has to.
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = os.path.join(TOP, "protocol", "api", "cupti_callbacks.txt")
DOMAINS = ("driver", "runtime")
HEAD = """\
# The numbers that CUPTI gives to the calls of the driver and of the runtime, as CUDA 13.5 names them; then the name
# in CUDA 12.9 where that is another, or `-` where that has none of this number. Made by tools/cupti-callbacks.py out
# of cupti_driver_cbid.h and cupti_runtime_cbid.h; tests/parity compares it with them.
"""


def numbers(folder, domain):
    """{number: name} of one of the headers."""
    with open(os.path.join(folder, f"cupti_{domain}_cbid.h"), encoding="utf-8") as file:
        rows = re.findall(r"_TRACE_CBID_(\w+)\s*=\s*(\d+)\s*[,}]", file.read())
    return {int(number): name for name, number in rows if name not in ("INVALID", "SIZE")}


def content(cache):
    newest, older = (os.path.join(cache, f"cupti-{major}") for major in (13, 12))
    out = HEAD
    for domain in DOMAINS:
        old = numbers(older, domain)
        for number, name in sorted(numbers(newest, domain).items()):
            before = old.pop(number, "-")
            out += f"{domain} {number} {name}" + (f" {before}\n" if before != name else "\n")
        if old:
            raise ValueError(f"{domain}: only in CUDA 12: {old}")
    return out


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(PATH, "w", encoding="utf-8") as to:
        to.write(content(sys.argv[1]))
