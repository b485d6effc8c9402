#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of tests/stack and tests/processes: every function test_* of their test_*.py.

    tests/stack/run.py [WORD ...]          those whose file or name has one of the words
    tests/stack/run.py --exact FILE.NAME   this one
    tests/stack/run.py --in FOLDER …       those of that folder of tests/ instead

A line for each; what a failed one said follows, and comes once more before the last line.  A test that leaves a
process behind failed.
"""
import importlib.util
import os
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "peer"))
sys.dont_write_bytecode = True

import stack  # noqa: E402

LIMIT = int(os.environ.get("TEST_LIMIT", "120"))  # seconds for one test


def load(folders):
    for folder in (os.path.join(HERE, "..", name) for name in folders):
        for name in sorted(os.listdir(folder)):
            if not name.startswith("test_") or not name.endswith(".py"):
                continue
            spec = importlib.util.spec_from_file_location(name[:-3], os.path.join(folder, name))
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            for key, value in list(vars(module).items()):
                if key.startswith("test_") and callable(value):
                    yield name[5:-3], key[5:], value


def out_of_time(*_):
    raise AssertionError(f"not done within {LIMIT} s")


def run_one(test):
    """(verdict, text)"""
    verdict, text = "pass", ""
    signal.alarm(LIMIT)
    try:
        test()
    except stack.Skip as reason:
        verdict, text = "skip", str(reason)
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)
        at = next((f for f in reversed(where) if "test_" in os.path.basename(f.filename)), where[-1])
        verdict, text = "fail", f"{os.path.basename(at.filename)}:{at.lineno}: {error or at.line}"
    except Exception:
        verdict, text = "fail", traceback.format_exc()
    finally:
        signal.alarm(0)
    left = stack.clean()
    if left and verdict != "fail":
        verdict, text = "fail", "left behind: " + ", ".join(left)
    return verdict, text


def chosen(full, words):
    if words[:1] == ["--exact"]:
        return full in words[1:]
    return not words or any(word in full for word in words)


def main(words):
    folders = ("stack", "processes")
    if words[:1] == ["--in"]:
        folders, words = words[1:2], words[2:]
        sys.path.insert(0, os.path.join(HERE, "..", *folders))
    count = {"pass": 0, "fail": 0, "skip": 0}
    failed = []
    signal.signal(signal.SIGALRM, out_of_time)
    stack.become_subreaper()
    for group, name, test in load(folders):
        if not chosen(f"{group}.{name}", words):
            continue
        began = time.monotonic()
        verdict, text = run_one(test)
        count[verdict] += 1
        print(f"{verdict}  {group + ': ' + name.replace('_', ' '):66} "
              f"{time.monotonic() - began:6.2f} s", flush=True)
        said = "    " + text.strip().replace("\n", "\n    ") + "\n" if text else ""
        print(said, end="", flush=True)
        if verdict == "fail":
            failed.append(f"fail  {group}.{name}\n{said}")
    print("".join(failed), end="")
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    return count["fail"] > 0 or not sum(count.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
