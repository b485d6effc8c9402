#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the fuzz targets find bugs?  Each stanza of planted.bugs is planted alone, in a copy of the checkout, and its
target looks for it, beginning with what the repository has.

    tests/fuzz/planted.py [--seconds 600] [--least N] [--check] [BUG ...]

A line for each: found, in how many seconds, and what the sanitizer or the target's own check said.  Fails where fewer
than --least were found (default: all but one in twenty), or a bug does not apply or build.  --check only looks whether
each applies."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TREE = ROOT / os.environ.get("BUILD", "build") / "planted"


def stanzas():
    bugs, bug = {}, None
    for line in (HERE / "planted.bugs").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line[0] in "-+":
            bug[line[0]].append(line[1:])
            continue
        name, target, file = line.split()
        assert name not in bugs, f"{name} is there twice"
        bug = bugs[name] = {"target": target, "file": file, "-": [], "+": []}
    return bugs


def make_tree():
    """A copy of what git has or would take, as it is here; objects that are there stay."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           text=True, stdout=subprocess.PIPE, check=True).stdout
    for name in filter(None, names.split("\0")):
        here, there = ROOT / name, TREE / name
        if not here.exists() or (there.exists() and there.stat().st_mtime_ns == here.stat().st_mtime_ns):
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(here, there)


def make(goal, log, *more):
    done = subprocess.run(["make", "--no-print-directory", "BUILD=build", *more, goal], cwd=TREE, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log.write_text(done.stdout)
    return done.returncode == 0, done.stdout


def with_bug(bug, root):
    """The file's text with the bug."""
    text, old = (root / bug["file"]).read_text(), "\n".join(bug["-"])
    if text.count(old) != 1:
        raise ValueError(f"{bug['file']} has its text {text.count(old)} times")
    return text.replace(old, "\n".join(bug["+"]))


def plant(bug):
    """Writes it; returns what puts the file back, and its object, so that nothing is compiled again for that."""
    file, kept = TREE / bug["file"], []
    text = with_bug(bug, TREE)
    for path in [file, *TREE.glob(f"build/fuzz/obj/{bug['file'][:-2]}*.o")]:
        kept.append((path, path.read_bytes(), path.stat()))
    file.write_text(text)

    def back():
        for path, content, stat in kept:
            path.write_bytes(content)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return back


def said(output):
    for pattern in (r"SUMMARY: (.*)", r"ERROR: (libFuzzer: .*)"):
        lines = re.findall(pattern, output)
        if lines:
            return lines[-1][:100].replace(str(TREE) + "/", "")
    return output.strip().splitlines()[-1][:100] if output.strip() else "nothing"


def look(name, bug, seconds):
    """(found, seconds, what it said); None: it could not be tried."""
    log = TREE / "logs" / f"{name}.txt"
    log.parent.mkdir(exist_ok=True)
    built, output = make(f"fuzz-{bug['target']}-built", log)
    if not built:
        return None, 0, "the target does not build: " + said(output)
    try:
        back = plant(bug)
    except ValueError as error:
        return None, 0, str(error)
    try:
        built, output = make(f"fuzz-{bug['target']}-built", log)
        if not built:
            return None, 0, "it does not build: " + said(output)
        shutil.rmtree(TREE / "build/tests/fuzz" / f"found-{bug['target']}", ignore_errors=True)
        since = time.monotonic()
        quiet, output = make(f"fuzz-{bug['target']}", log, f"FUZZ_SECONDS={seconds}")
        return not quiet, time.monotonic() - since, said(output) if not quiet else ""
    finally:
        back()


def check(bugs):
    wrong = 0
    for name, bug in bugs.items():
        try:
            with_bug(bug, ROOT)
        except ValueError as error:
            wrong += 1
            print(f"{name}: {error}: write the stanza in planted.bugs for the code as it is now")
    print(f"{len(bugs) - wrong} of {len(bugs)} planted bugs apply")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for each bug (600)")
    parser.add_argument("--least", type=int, help="how many must be found")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("bugs", nargs="*")
    options = parser.parse_args()
    bugs = stanzas()
    for name in options.bugs:
        if name not in bugs:
            parser.error(f"no bug {name} in planted.bugs")
    names = options.bugs or sorted(bugs, key=lambda name: bugs[name]["target"])
    if options.check:
        return check(bugs)
    make_tree()
    found = untried = 0
    for name in names:
        was, seconds, what = look(name, bugs[name], options.seconds)
        found += was is True
        untried += was is None
        verdict = "found" if was else "not found" if was is False else "NOT TRIED"
        print(f"{verdict:9}  {name:26} {bugs[name]['target']:12} {seconds:6.1f} s  {what}", flush=True)
    least = options.least if options.least is not None else len(names) - len(names) // 20
    print(f"{found} of {len(names)} planted bugs found, {options.seconds} s each at most; {least} must be")
    return 0 if found >= least and not untried else 1


if __name__ == "__main__":
    sys.exit(main())
