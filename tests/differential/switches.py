#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The differential test once with each optimisation off, and with all of them off: each gives the same share.

    tests/differential/switches.py [OPTION…]      options of run.py: --dist, --driver, --native, …

Exit status 1 if run.py fails with a switch, or if with one more calls differ undeclared than without any by
more than SLACK of all: where memory lies depends on a switch, and what is beside it may be another error.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SWITCHES = ("no_post", "no_cache", "no_learn", "no_batch", "no_slab", "no_push", "no_zerocopy",
            "no_module_cache", "no_userfaultfd")
SLACK = 0.001


def share(perf, options):
    """(calls, those that differ undeclared), or None where run.py failed; prints its last line."""
    done = subprocess.run([os.path.join(HERE, "run.py"), *options, "--perf", perf], stdout=subprocess.PIPE,
                          text=True, check=False)
    last = (done.stdout.splitlines() or [""])[-1]
    print(f"{perf or 'all on':<18.18} {last}", flush=True)
    match = re.match(r"(\d+) calls .* (\d+) different", last)
    if done.returncode or not match:
        print(done.stdout)
        return None
    return int(match[1]), int(match[2])


def main():
    options = sys.argv[1:]
    plain = share("", options)
    if not plain:
        return 1
    failed = 0
    for perf in (*SWITCHES, ",".join(SWITCHES)):
        one = share(perf, options)
        if not one or one[1] - plain[1] > SLACK * plain[0]:
            print(f"{perf}: not as with all optimisations on")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
