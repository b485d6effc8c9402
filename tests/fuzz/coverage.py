#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of what reads foreign bytes the fuzzers' inputs reach, of each target and its boundary.

    tests/fuzz/coverage.py FOLDER             a line each; exit status 1 where less is reached than LEAST says
    tests/fuzz/coverage.py FOLDER --missing   and the functions of the boundary that no input reaches

FOLDER has NAME.txt of each target, what libFuzzer prints with -print_coverage=1 (`make fuzz-coverage`).  Functions
are those of the boundary's files that the target is linked with.  Of the edges many are the sanitizer's own, which
no right program takes, so half of them is much.
"""
import os
import re
import sys

# Target: what reads the bytes there (a file, or all of a folder), and how many of its functions in a hundred the
# inputs of the repository reach at least.  Below that the seeds have rotten: a version that they do not know, say.
BOUNDARY = {
    "codec": (("transport/codec/codec.c", "transport/codec/guess.c", "transport/codec/planes.c"), 75),
    "cudnn": (("gpu-agent/generated/cudnn_serve.c", "gpu-agent/worker/libraries/cudnn/"), 45),
    "elf": (("command/elf.c",), 80),
    "fatbin": (("softgpu/driver/module/fatbin.c", "softgpu/driver/module/archive.c"), 85),
    "frame": (("sidecar/channel/replies.c",), 60),
    "handoff": (("gpu-agent/front/handoff.c", "gpu-agent/front/sharing.c", "gpu-agent/front/worker_pool.c",
                 "gpu-agent/front/ledger/lease.c"), 70),
    "hello": (("gpu-agent/front/session/hello.c", "gpu-agent/front/session/hello_accept.c",
               "gpu-agent/front/session/session_join.c"), 70),
    "http": (("gpu-agent/front/http/http.c",), 60),
    "jwt": (("gpu-agent/identity/",), 85),
    "network": (("common/network.c", "common/config.c"), 80),
    "pieces": (("transport/codec/piece.c", "transport/codec/codec.c", "transport/codec/planes.c"), 50),
    "ptx": (("softgpu/ptx/parse/", "softgpu/ptx/decode/"), 80),
    "registry": (("gpu-agent/store/registry/",), 75),
    "ring": (("transport/ring.c",), 60),
    "shim-fatbin": (("shim/driver/module/fatbin.c",), 30),
    "socket": (("sidecar/channel/attach.c", "sidecar/channel/channel.c", "sidecar/memory/segment.c",
                "sidecar/server/pending.c"), 75),
    "tensors": (("gpu-agent/store/calls.c", "gpu-agent/store/calls_take.c", "gpu-agent/store/handle.c",
                 "gpu-agent/store/tensor_table.c"), 75),
    "tls": (("transport/tls/connection.c", "transport/tls/handshake.c", "transport/tls/tls_context.c"), 60),
    "tls_records": (("transport/tls/link.c", "transport/tls/record.c"), 65),
    "victim": (("shim/engine/",), 50),
    "worker": (("gpu-agent/generated/", "gpu-agent/worker/loop/"), 58),
    "yaml": (("sidecar/options/", "common/config.c"), 75),
}
LINE = re.compile(r"^(?:UN)?COVERED_FUNC: hits: (\d+) edges: (\d+)/(\d+) (\S+) (\S+?):(\d+)$", re.M)
INPUTS = re.compile(r"^#(\d+)\s+DONE", re.M)
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def functions(text):
    """{(file, line): (name, edges reached, edges)}: what is inlined, and so there twice, once."""
    found = {}
    for _hits, reached, edges, name, file, line in LINE.findall(text):
        at = os.path.relpath(os.path.realpath(os.path.join(ROOT, file)), ROOT), int(line)
        before = found.get(at, (name, 0, 0))
        found[at] = name, max(before[1], int(reached)), max(before[2], int(edges))
    return found


def measured(text, files):
    """(functions reached, all, edges reached, all, [what is not reached])"""
    mine = {at: what for at, what in functions(text).items()
            if any(at[0] == file or file.endswith("/") and at[0].startswith(file) for file in files)}
    reached = [what for what in mine.values() if what[1]]
    missing = [f"{file}:{line} {what[0]}" for (file, line), what in sorted(mine.items()) if not what[1]]
    return (len(reached), len(mine), sum(what[1] for what in reached), sum(what[2] for what in mine.values()), missing)


def main(folder, *words):
    names = {name[:-4] for name in os.listdir(folder) if name.endswith(".txt")}
    faults = [f"{name}: a target without a boundary here" for name in sorted(names - set(BOUNDARY))]
    faults += [f"{name}: no target of that name was run" for name in sorted(set(BOUNDARY) - names)]
    print(f"{'target':12}{'inputs':>8}{'functions':>14}{'':6}{'edges':>14}")
    for name in sorted(names & set(BOUNDARY)):
        files, least = BOUNDARY[name]
        with open(os.path.join(folder, name + ".txt"), encoding="utf-8", errors="replace") as file:
            text = file.read()
        inputs = INPUTS.findall(text)
        have, count, edges, edge_count, missing = measured(text, files)
        if not inputs or not count:
            faults.append(f"{name}: nothing was measured: {text[-300:]}")
            continue
        share = 100 * have // count
        print(f"{name:12}{inputs[-1]:>8}{f'{have} of {count}':>14}{share:4} %{f'{edges} of {edge_count}':>14}")
        if share < least:
            faults.append(f"{name}: {share} in a hundred functions are reached, and {least} were")
        if "--missing" in words:
            print("".join(f"    {line}\n" for line in missing), end="")
    print("".join(f"coverage: {fault}\n" for fault in faults), end="")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
