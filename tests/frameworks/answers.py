# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: a function is a row, its result is a line `NAME DIGEST`.

    @answer
    def product():
        return x @ y          # anything NumPy can read, numbers, text, tuples and dicts of them

    answers.main("jax", jax.__version__)
"""
import hashlib
import sys

rows = []


def answer(function):
    rows.append(function)
    return function


def feed(value, found):
    if isinstance(value, (tuple, list)):
        for one in value:
            feed(one, found)
    elif isinstance(value, dict):
        for key in sorted(value):
            feed((key, value[key]), found)
    elif isinstance(value, (str, bytes, int, float, complex, bool, type(None))):
        found.update(repr(value).encode())
    else:
        import numpy
        value = value.get() if hasattr(value, "get") else value  # CuPy's
        array = numpy.asarray(value)
        found.update(f"{array.shape} {array.dtype}".encode() + array.tobytes())


def main(framework, version):
    only = sys.argv[1:]
    print("version", framework, version, flush=True)
    for row in rows:
        if only and row.__name__ not in only:
            continue
        try:
            found = hashlib.sha256()
            feed(row(), found)
            got = found.hexdigest()[:16]
        except Exception as error:
            text = str(error).split("\n", 1)[0][:100].replace(" ", "_")
            got = f"{type(error).__name__}:{text}"
        print("row", row.__name__, got, flush=True)
