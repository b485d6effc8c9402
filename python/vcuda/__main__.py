# SPDX-License-Identifier: Apache-2.0
"""python3 -m vcuda push|ls|rm: what `vcuda weights` runs."""
import argparse
import os
import sys
import time

from . import delete, names
from .library import Error
from .weights import files_of, open_file


def push(options):
    files = [file for path in options.paths for file in (files_of(path) if os.path.isdir(path) else [path])]
    if options.name and len(files) != 1:
        raise Error(1, f"--name is for one file, not {len(files)}")
    for file in files:
        begin = time.monotonic()
        whole, parts = open_file(file, name=options.name, keep=options.keep, evictable=not options.keep)
        print(f"{'loaded' if whole.made else 'there  '} {whole.name}  {len(parts)} tensors, {whole.nbytes / 2**20:.1f} MiB, "
              f"{time.monotonic() - begin:.2f} s  {file}", flush=True)
        whole.close()


def ls(options):
    print(f"{'STATE':8} {'MIB':>12} {'HOLDERS':>7}  NAME")
    for one in names(options.prefix):
        print(f"{'sealed' if one['sealed'] else 'created':8} {one['bytes'] / 2**20:12.1f} {one['holders']:7}  {one['name']}")


def rm(options):
    for name in options.names:
        delete(name)


def main():
    parser = argparse.ArgumentParser(prog="vcuda weights")
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("push", help="loads safetensors files, for every pod")
    one.add_argument("paths", nargs="+", metavar="FILE|FOLDER")
    one.add_argument("--name", help="one file under this name, and not by its content")
    one.add_argument("--keep", action="store_true", help="it stays until it is removed; else until memory is short")
    one.set_defaults(do=push)
    one = verbs.add_parser("ls", help="what there is")
    one.add_argument("prefix", nargs="?", default="weights.")
    one.set_defaults(do=ls)
    one = verbs.add_parser("rm", help="a name goes at once, its memory with its last user")
    one.add_argument("names", nargs="+", metavar="NAME")
    one.set_defaults(do=rm)
    options = parser.parse_args()
    try:
        options.do(options)
    except (Error, OSError) as error:
        sys.exit(f"vcuda weights: {error}")


if __name__ == "__main__":
    main()
