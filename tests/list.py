#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The list of tests: a line for each, its name for `make run-NAME` and what it shows.

    tests/list.py [--names | --check] ENTRY...     (make list-tests, make check-tests)

An ENTRY is NAME=FILE, whose first sentence says what the test shows; PREFIX-*=FILE, for every test
function of FILE; or PREFIX-*=FILE,ARGUMENT…, for every line `NAME<TAB>WHAT` that FILE prints with
these arguments, with `<TAB>FILE` behind it where a test is a file of its own.  --check fails where a test program of the tree is in no entry.
"""
import ast
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# Files with a main() or a test function that are no tests by themselves, and why.
OTHERS = {
    "programs that tests run": (
        "tests/cublas/steady.c", "tests/cublaslt/steady.c", "tests/cudnn/steady.c",
        "tests/cufft/steady.c", "tests/curand/steady.c", "tests/cusolver/steady.c", "tests/cusparse/steady.c",
        "tests/cusparselt/steady.c", "tests/nccl/steady.c", "tests/differential/trace.cu",
        "tests/roundtrips/steady.cu", "tests/roundtrips/part.py", "tests/faults/app.cu", "tests/stack/app.cu",
        "tests/stack/outlast.cu", "tests/store/foreign.c", "tests/store/redis_reader.c", "tests/store/shell.py", "tests/store/tensor.c",
        "tests/stack/events.cu", "tests/stack/payloads.cu", "tests/stack/spread.cu", "tests/stack/uploads.cu",
        "tests/frameworks/vllm_rows.py", "tests/agent/toy_worker.c", "tests/store/registry_store.c", "tests/unit/softgpu/softgpu_kernels.cu", "tests/loader/plugin.cu",
        "tests/stack/direct.cu", "tests/net/line.c", "tests/net/upload.cu",
        "tests/nvml/on_node.py", "tests/unserved/linked.c", "tests/programs/modules/numbers.cu",
        "tests/programs/modules/conditional.cu", "tests/programs/modules/nested.cu",
        "tests/programs/modules/tensor.cu", "tests/shim/trace/kernel.cu", "tests/windows/absent.c", "tests/windows/driver.c", "tests/windows/ipc.c", "tests/windows/loop.c",
        "tests/windows/nvml.c", "tests/windows/runtime.c", "tests/windows/threads.c"),
    "they run the tests of other files": (
        "tests/cluster/run.py", "tests/curand/run.py", "tests/models/run.py",
        "tests/programs/run.sh", "tests/stack/run.py", "tests/torch/run.py"),
    "what several tests share": (
        "tests/fuzz/agent_replay.c", "tests/fuzz/forked.c", "tests/gpu/library.sh",
        "tests/gpu/rows.py", "softgpu/ptx/tests/run_text.c"),
    "tools beside the tests": (
        "tests/cluster/build.sh", "tests/differential/calls.py", "tests/differential/compare.py", "tests/cluster/netpol.py", "tests/cluster/node.py",
        "tests/cluster/pack.sh", "tests/collection/pack.py", "tests/collection/pack_library_samples.py",
        "tests/collection/pack_samples.py", "tests/collection/run.py", "tests/curand/reduce.py", "tests/deploy/schemas.py", "tests/deploy/tools.sh",
        "tests/frameworks/examples.py", "tests/frameworks/record.py", "tests/fuzz/coverage.py", "tests/fuzz/seeds.py", "tests/images/engine.sh", "tests/numba/document.py",
        "tests/numba/install.sh", "tests/numba/pack.sh", "tests/torch/install.sh",
        "tests/list.py", "softgpu/ptx/tests/load.c"),
}
FOLDERS = ("tests", "softgpu/ptx/tests")
PROGRAM = {
    ".c": re.compile(r"^int main\(|^int LLVMFuzzerTestOneInput\(", re.M),
    ".cu": re.compile(r"^int main\(|^TEST_MAIN|^__global__", re.M),
    ".py": re.compile(r"^if __name__ == .__main__.:|^ *def test_", re.M),
    ".sh": re.compile(r"^#!", re.M),
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sentence(text):
    """The first sentence of a comment, as one line."""
    text = " ".join(line.strip().lstrip("*#/").strip() for line in text.strip().splitlines())
    return re.split(r"(?<=\.)\s+(?=[A-Z`(])", text, maxsplit=1)[0].strip().rstrip(".")


def comment_of(path):
    """The comment that a file begins with, without the licence and lines for tools."""
    text = read(path)
    if path.endswith((".c", ".cu", ".pml")):
        text = text.replace("/* SPDX-License-Identifier: Apache-2.0 */", "", 1)
        text = re.sub(r"// SPDX-License-Identifier: Apache-2.0\n", "", text, count=1)
        text = text.replace("/* SPDX-License-Identifier: Apache-2.0", "/*", 1)
        found = re.search(r"/\*(.*?)\*/", text, re.S)
        return found[1] if found else ""
    lines = [line for line in text.splitlines()
             if not re.match(r"#!|# SPDX-|# (needs|arm): ", line)]
    text = "\n".join(lines).lstrip()
    if text.startswith('"""'):
        return text[3:].split('"""', 1)[0].split("\n\n", 1)[0]
    comment = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        comment.append(line)
    return "\n".join(comment)


def functions_of(path):
    """(name, what) of each test function: FILE.FUNCTION, or FILE.CLASS.FUNCTION as unittest has it."""
    stem = os.path.basename(path)[:-3]
    for node in ast.parse(read(path)).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for function in inside:
            name = getattr(function, "name", "")
            if not isinstance(function, ast.FunctionDef) or not name.startswith("test_"):
                continue
            what = name[5:].replace("_", " ")
            if isinstance(node, ast.ClassDef):
                yield f"{stem}.{node.name}.{name}", what
            else:
                yield f"{stem.removeprefix('test_')}.{name[5:]}", what


def printed_by(path, arguments):
    got = subprocess.run([os.path.join(ROOT, path), *arguments], capture_output=True,
                         text=True, timeout=30)
    if got.returncode or not got.stdout:
        sys.exit(f"{path} {arguments}: status {got.returncode}: {got.stderr.strip()}")
    return [line.split("\t") for line in got.stdout.splitlines()]


def expand(entries):
    """(name, what, file) of each test."""
    for entry in entries:
        name, _, source = entry.partition("=")
        path, *arguments = source.split(",")
        if not name.endswith("*"):
            yield name, sentence(comment_of(path)), path
        else:
            rows = printed_by(path, arguments) if arguments else functions_of(path)
            for part, what, *file in rows:
                yield name[:-1] + part, what, file[0] if file else path


def check(tests):
    """What is wrong with the list, one line each."""
    wrong, seen = [], set()
    for name, what, path in tests:
        if name in seen:
            wrong.append(f"two tests are called {name}")
        if not what:
            wrong.append(f"{path}: says nothing about {name}")
        seen.add(name)
    listed = {path for _, _, path in tests}
    others = {path for paths in OTHERS.values() for path in paths}
    files = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    for path in files:
        kind = PROGRAM.get(os.path.splitext(path)[1])
        if not os.path.exists(os.path.join(ROOT, path)) or not kind or not kind.search(read(path)):
            continue
        if path not in listed | others:
            wrong.append(f"{path}: in no test list (add_test or TEST_LIST of its .mk)")
    wrong += [f"tests/list.py: {path} is a test, and in OTHERS" for path in sorted(listed & others)]
    wrong += [f"tests/list.py: there is no {path}" for path in sorted(others - set(files))]
    return wrong


def main():
    entries = [word for word in sys.argv[1:] if not word.startswith("--")]
    tests = list(expand(entries))
    if not tests:
        sys.exit(__doc__)
    if "--check" in sys.argv:
        wrong = check(tests)
        for line in wrong:
            print(f"check-tests: {line}", file=sys.stderr)
        return len(wrong) > 0
    if "--names" in sys.argv:
        print("\n".join(name for name, _, _ in tests))
        return 0
    width = min(50, max(len(name) for name, _, _ in tests))
    for name, what, _ in tests:
        print(f"{name:{width}}  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
