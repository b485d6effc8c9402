# SPDX-License-Identifier: Apache-2.0
"""Sets DF_1_INITFIRST in a shared library, as `ld -z initfirst` would; zig's linker lacks it.

usage: initfirst.py LIBRARY    (the library must have a DT_FLAGS_1 entry: link with -z nodelete)
"""
import struct
import sys

PT_DYNAMIC, DT_NULL, DT_FLAGS_1, DF_1_INITFIRST = 2, 0, 0x6FFFFFFB, 0x20


def main(path):
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        start, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        for i in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
            if kind != PT_DYNAMIC:
                continue
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == DT_NULL:
                    break
                if tag == DT_FLAGS_1:
                    struct.pack_into("<Q", data, at + 8, value | DF_1_INITFIRST)
                    file.seek(0)
                    file.write(data)
                    return
    sys.exit(f"initfirst.py: {path}: no DT_FLAGS_1 entry")


main(sys.argv[1])
