#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The map of the shim's state is true: each lock has the rank that enum lock_rank (shim/engine/engine.h) names, in the
file that its comment names, and what is no lock and no struct with an owner is in the table below.

    tools/locks.py           checks
    tools/locks.py --test    shows that it finds each kind of fault

Exit status 1 with a fault. `make test-locks` holds the order itself, in programs that run.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAP = "shim/engine/engine.h"
# shim/tensor stands without the engine; generated files have what the generator says.
OUTSIDE = re.compile(r"^shim/(tensor/|generated/)|/generated/|^shim/engine/lock")

# {file: {variable: why it is in no struct}}
LOOSE = {
    "shim/driver/array/array_map.c": {"map_lock": "a lock; what it guards is in struct array"},
    "shim/driver/context/context.c": {"vcuda_resets": "exported to the other libraries of the shim"},
    "shim/driver/memory/pages/page_fault_userfaultfd.c": {"uffd": "the process has one"},
    "shim/driver/memory/managed/managed.c": {"managed_any": "read on the path of each copy, without the lock"},
    "shim/driver/memory/mirror/mirror.c": {"mirror_regions": "read on the path of each launch, without the lock",
                                    "mirror_apart": "the same"},
    "shim/driver/memory/virtual/vmm_host.c": {"vmm_host_mappings": "read on the path of each copy, without the lock"},
    "shim/driver/stream/memop.c": {"gates": "set once; read on the path of each copy"},
    "shim/driver/stream/order.c": {"order_lock": "a lock; what it guards is in struct context"},
    "shim/driver/stream/sync.c": {"last_value": "numbers that are given out once"},
    "shim/driver/tensor/tensor.c": {"lock": "one question at a time; it guards no memory"},
    "shim/engine/engine.c": {"shim_perf": "read on the path of each call",
                             "scratch_shared": "of threads without scratch memory of their own"},
    "shim/engine/attach/own_sidecar.c": {"environment": "of the one sidecar that the process starts; too large for a stack"},
    "shim/engine/session.c": {"session_count": "read on the path of each call"},
    "shim/engine/trace.c": {"shim_watched": "read on the path of each call"},
    "shim/libraries/cublas/handle.c": {"log_callback": "the program's, for its question alone"},
    "shim/libraries/cudnn/results.c": {"last_mode": "the mode of the last call, which cuDNN 8 asks for"},
    "shim/libraries/cudnn/status.c": {"known_version": "what the agent's library said", "known_cudart": "the same"},
    "shim/loader/linked.c": {"used": "how much of its table is taken"},
    "shim/runtime/runtime.c": {"own_resets": "in place of vcuda_resets where there is no driver front",
                               "runtime_generation": "the one of the two that is there", 
                               "runtime_watched": "read by each stub"},
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def ranks_of(text):
    """{rank: the file that its comment names, or ""}, in their order."""
    body = re.search(r"enum lock_rank \{(.*?)LOCK_RANKS", text, re.S)[1]
    return {rank: (re.search(r"\b([a-z_]+/[\w/]+\.[ch])", comment) or ["", ""])[1]
            for rank, comment in re.findall(r"(LOCK_\w+),\s*/\*(.*?)\*/", body, re.S)}


def loose_in(text):
    """Variables at file scope that are no constants, of no thread alone and no structs."""
    found, depth = [], 0
    for line in without_comments(text).split("\n"):
        head = re.split(r"=|;", line)[0]
        if not depth and re.match(r"[a-z_]", line) and re.search(r"[=;]\s*$|= ", line) and "(" not in head and \
                not re.search(r"\b(const|typedef|extern|struct|union|enum|__thread|_Thread_local)\b", head):
            first, *more = head.split(",")
            for part in [first, *more] if len(first.split()) > 1 else []:
                found += re.findall(r"(\w+)(?:\[[^\]]*\])*\s*$", part)
        depth += line.count("{") - line.count("}")
    return found


def holders(texts, named):
    """The file that is named, where its lock is a member of what another file, of its room, makes: session.c has those
    of the engine."""
    path, room = f"shim/{named}", os.path.dirname(f"shim/{named}")
    uses = path in texts and re.search(r"pthread_mutex_lock|ring_lock|_lock\b", texts[path])
    return [path] if uses and room == "shim/engine" else []


def faults_of(texts, loose):
    """TEXTS: {path: text} of the shim, with the map."""
    ranks, out = ranks_of(texts[MAP]), []
    used = {}
    for path, text in texts.items():
        if path == MAP or OUTSIDE.search(path):
            continue
        code = without_comments(text)
        for rank in re.findall(r"(?:LOCK_RANK|lock_order_rank)\((?:[^;]*?)\b(LOCK_\w+)\b", code):
            used.setdefault(rank, []).append(path)
        if re.search(r"PTHREAD_MUTEX_INITIALIZER|pthread_mutex_init", code) and \
                not re.search(r"LOCK_RANK|lock_order_rank", code):
            out.append(f"{path}: a lock without a rank (shim/engine/lock.h)")
        allowed = loose.get(path, {})
        found = loose_in(text)
        out += [f"{path}: {name} is in no struct with an owner, nor in tools/locks.py" for name in found
                if name not in allowed]
        out += [f"{path}: there is no {name}, which tools/locks.py names" for name in allowed if name not in found]
    for rank, named in ranks.items():
        where = used.get(rank, [])
        if not where:
            out.append(f"{MAP}: no lock has the rank {rank}")
        elif named and f"shim/{named}" not in (texts if named.endswith(".h") else [*where, *holders(texts, named)]):
            out.append(f"{MAP}: {rank} is not in {named}, but in {', '.join(sorted(set(where)))}")
    return out


def texts_of():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "shim/*.c", "shim/*.h"], capture_output=True, text=True,
                            timeout=60, check=True).stdout.split()
    found = {}
    for path in listed:
        if os.path.exists(f"{ROOT}/{path}"):
            with open(f"{ROOT}/{path}") as file:
                found[path] = file.read()
    return found


def test():
    """A map, a file that fits it, and files with one fault each."""
    good = {MAP: "enum lock_rank {\n\tLOCK_A, /* driver/a.c: x */\n\tLOCK_RANKS,\n};\n",
            "shim/driver/a.c": "struct a a = {.lock = PTHREAD_MUTEX_INITIALIZER};\nLOCK_RANK(a, a.lock, LOCK_A);\n"
                               "static const int table[] = {1};\nstatic int f(void)\n{\n\tint x = 1;\n}\n"}
    wrong = ({"shim/driver/b.c": "static struct b b = {PTHREAD_MUTEX_INITIALIZER};\n"},
             {"shim/driver/b.c": "static int loose;\n"}, {"shim/driver/b.c": "unsigned loose[4] = {0};\n"},
             {MAP: good[MAP].replace("LOCK_RANKS", "LOCK_B, /* of one b */\n\tLOCK_RANKS")},
             {MAP: good[MAP].replace("a.c", "gone.c")})
    if faults_of(good, {}):
        return f"locks: a right map has faults: {faults_of(good, {})}"
    missed = [case for case in wrong if len(faults_of({**good, **case}, {})) != 1]
    missed += [] if faults_of(good, {"shim/driver/a.c": {"gone": ""}}) else ["a variable that is gone"]
    return f"locks: not found: {missed}" if missed else ""


def main(words):
    if words == ["--test"] and (text := test()):
        sys.exit(text)
    texts = texts_of()
    faults = faults_of(texts, LOOSE)
    print("\n".join([*faults, f"locks: {len(ranks_of(texts[MAP]))} ranks, {sum(map(len, LOOSE.values()))} variables "
                     f"outside of a struct, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
