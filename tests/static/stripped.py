# SPDX-License-Identifier: Apache-2.0
"""Libraries with a CUDA runtime linked into them and stripped of their symbols work as others do, and nothing is said of them.

    stripped.py FILE=MAJOR ...
"""
import ctypes
import os
import sys
import tempfile

failures = 0


def check(right, what):
    global failures
    failures += not right
    print(f"{'pass' if right else 'fail'}  {what}", flush=True)


def main():
    said = tempfile.TemporaryFile()
    before = os.dup(2)
    os.dup2(said.fileno(), 2)
    driver = ctypes.CDLL("libcuda.so.1")
    for argument in sys.argv[1:]:
        path, _, major = argument.rpartition("=")
        library = ctypes.CDLL(path)
        what = os.path.basename(path)
        check(library.device_count() > 0, f"{what}: it counts the devices")
        check(library.there_and_back(1234) == 1234, f"{what}: a number goes there and back")
        check(library.runtime_version() // 1000 == int(major), f"{what}: its runtime is of CUDA {major}")
        check(library.last_error() == 101, f"{what}: the last error is told")
        check(library.table(driver.cuGetExportTable) == 801, f"{what}: a table that it asks for itself is refused")
    os.dup2(before, 2)
    said.seek(0)
    text = said.read().decode()
    check(not text, f"nothing is said of it {text}")
    print(f"{failures} failed")
    sys.exit(failures != 0)


main()
