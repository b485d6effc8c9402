#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Of the names of each library that a header of NVIDIA declares, at most 5 % are refused, but for the groups
that are declared here, each with why; and each reason says what to do instead, or why there is nothing."""
import copy
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "protocol"))

import generate  # noqa: E402
from generator.docs import UNDECLARED  # noqa: E402

MOST = 0.05
# Reason as the description has it: why the group is not counted.
GROUPS = {
    "cufft": {
        "code for the kernels that cuFFTDx builds: build them beside NVIDIA's libcufft, what is built runs here":
            "experimental host functions whose answers are LTO-IR for a compiler: needed where a program is built, not where it runs",
    },
    "cupti": {
        "counters and samples of the hardware: take them with Nsight Compute on the machine of the GPU":
            "they are read from registers of the whole GPU, which is not one tenant's",
        "call the form without _v2: one subscriber profiles at a time":
            "CUDA 13.5's forms for several profilers in one process, and for records of chosen fields",
    },
    "nccl": {
        "kernels that communicate by themselves are not served":
            "the agent's NCCL has memory and windows that a kernel of the program's cannot name",
    },
}


def faults(description):
    """What is wrong, a line each."""
    out = []
    for family in description.libraries:
        entries = [e for e in description.of(family) if e.reason != UNDECLARED]
        refused = [e for e in entries if e.verb == "refused"]
        groups = GROUPS.get(family, {})
        counted = [e for e in refused if e.reason not in groups]
        share = len(counted) / len(entries)
        if share > MOST:
            out.append(f"{family}: {len(counted)} of {len(entries)} names are refused, {share:.1%}")
        for group in groups:
            if not any(e.reason == group for e in refused):
                out.append(f"{family}: nothing is refused since \"{group}\"")
        for e in counted:
            if not e.reason or e.reason.rstrip(".").endswith(("not served", "not served yet")):
                out.append(f"{e.origin}: {e.name}: \"{e.reason}\" says nothing to do")
    return out


def spoiled(description, spoil):
    broken = copy.deepcopy(description)
    spoil(broken)
    return faults(broken)


def refuse_many(description):
    served = [e for e in description.of("curand") if e.verb != "refused"]
    for e in served[:2]:
        e.verb, e.reason = "refused", "use another one"


def say_nothing(description):
    next(e for e in description.of("cusparse") if e.verb == "refused").reason = "experimental: not served"


def serve_group(description):
    for e in description.of("nccl"):
        if e.reason in GROUPS["nccl"]:
            e.verb, e.reason = "local", None


def main():
    description = generate.load()
    failed = faults(description)
    for line in failed:
        print(f"not ok - {line}")
    for spoil in (refuse_many, say_nothing, serve_group):
        if len(spoiled(description, spoil)) <= len(failed):
            failed = failed + [spoil.__name__]
            print(f"not ok - {spoil.__name__} is not noticed")
    print(f"refused: {len(description.libraries)} libraries, {len(failed)} faults")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
