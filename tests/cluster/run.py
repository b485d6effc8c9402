#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [WORD...]: brings the real node up, installs the chart as a user would, runs the tests whose
names have one of the words (all), takes everything away.  --exact FILE.NAME runs this test alone.
--keep leaves node and release up; a node that is up already is used as it is.  Closes with
`N passed, N failed, N skipped`."""
import importlib
import os
import sys
import time
import traceback

import node
from cluster import BUILD, Skip

FILES = ("test_pods", "test_limits", "test_shapes", "test_life", "test_seed", "test_model", "test_kyverno", "test_network",
         "test_secure", "test_values", "test_transports", "test_several", "test_tensors", "test_peers", "test_registry", "test_release")
# What any other test needs, the release, and its end.
INSTALL, UNINSTALL = "pods.helm_install", "release.uninstall_leaves_nothing_behind"
ARCHIVES = [os.path.join(BUILD, "images", name + ".tar")
            for name in ("client", "client-slim", "gpu-agent", "demo", "redis")]


def chosen(group, name, words):
    if words[:1] == ["--exact"]:
        return f"{group}.{name}" in words[1:]
    title = f"{group}: {name.replace('_', ' ')}"
    return not words or any(word in title for word in words)


def tests(words, around):
    """Those that the WORDS choose, and AROUND."""
    for name in FILES:
        module = importlib.import_module(name)
        for what, function in list(vars(module).items()):
            if what.startswith("test_") and (chosen(name[5:], what[5:], words) or f"{name[5:]}.{what[5:]}" in around):
                yield f"{name[5:]}: {what[5:].replace('_', ' ')}", function


def main():
    words = [word for word in sys.argv[1:] if word != "--keep"]
    passed, failed, skipped = 0, 0, 0
    began = time.monotonic()
    around = []
    if not node.recorded("kubelet"):
        node.up(ARCHIVES)
        around = [INSTALL] if "--keep" in sys.argv else [INSTALL, UNINSTALL]
    else:
        for archive in ARCHIVES:
            node.load(archive)
    try:
        for title, function in tests(words, around):
            start = time.monotonic()
            try:
                note = function() or ""
                passed += 1
                print(f"pass  {title:74} {time.monotonic() - start:6.1f} s  {note}", flush=True)
            except Skip as reason:
                skipped += 1
                print(f"skip  {title:74} {reason}", flush=True)
            except Exception as error:  # whatever it is, the next test runs
                failed += 1
                print(f"fail  {title:74} {time.monotonic() - start:6.1f} s", flush=True)
                where = "".join(traceback.format_tb(error.__traceback__)[-2:])
                # Without the first one, the release, there is nothing to test.
                stop = failed == 1 and not passed
                for line in f"{where}{type(error).__name__}: {error}".split("\n"):
                    print("    " + line)
                if stop:
                    break
    finally:
        if "--keep" not in sys.argv:
            node.down()
    print(f"{time.monotonic() - began:.0f} s in all")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
