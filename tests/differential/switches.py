#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The differential test once with each optimisation off, and with all of them off.

    tests/differential/switches.py [OPTION…]      options of run.py: --dist, --driver, --native, …

Exit status 1 if a call differs undeclared with a switch, all others being on.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SWITCHES = ("no_post", "no_cache", "no_learn", "no_batch", "no_slab", "no_push", "no_zerocopy",
            "no_module_cache", "no_userfaultfd")


def same(perf, options):
    """Whether run.py finds nothing with PERF off; prints its last line, or all of it."""
    done = subprocess.run([os.path.join(HERE, "run.py"), *options, "--perf", perf], stdout=subprocess.PIPE,
                          text=True, check=False)
    last = (done.stdout.splitlines() or [""])[-1]
    print(f"{perf or 'all on':<18.18} {last if done.returncode == 0 else done.stdout}", flush=True)
    return done.returncode == 0


def main():
    results = [same(perf, sys.argv[1:]) for perf in ("", *SWITCHES, ",".join(SWITCHES))]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
