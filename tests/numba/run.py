#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numba's own CUDA tests, unmodified, through the whole stack: what does not pass, by cause.

    tests/numba/run.py [--python FILE] [--dist build] [--driver software|nvidia] [--native]
                       [--only WORD] [-jN]

Every module of numba.cuda.tests is one `python -m numba.runtests -v MODULE` behind `vcuda run`.
A module that crashes, or finishes no test for --limit seconds, goes on with its next test.
expected.txt lists the tests that need not pass, each with its reason; exit status 1 if another
one fails, or if one of those passes after all.  --native runs the same on this machine's GPU
first, without vcuda, and names each test that ends differently.  CUDA_HOME is taken from the
environment, else from the folder that install.sh made.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import selectors
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
import stack  # noqa: E402

SUITE = "numba.cuda.tests"
BEGINS = re.compile(r"^\s*(\w+) \((numba\.[\w.]+)\)(.*)")
ENDS = re.compile(r"(?:^|\.\.\. )(ok|ERROR|FAIL|skipped (['\"]).*\2|expected failure|"
                  r"unexpected success)$")
SECTION = re.compile(r"^(?:ERROR|FAIL): (\w+) \((numba\.[\w.]+)\)")
Outcome = collections.namedtuple("Outcome", "verdict cause")


def verdict_of(word):
    if word.startswith("skipped"):
        return Outcome("skip", word[9:-1])
    return {"ok": Outcome("pass", ""), "expected failure": Outcome("pass", ""),
            "ERROR": Outcome("error", ""), "FAIL": Outcome("fail", "")}.get(
                word, Outcome("fail", word))


def causes(text):
    """{test: the last line of its traceback}"""
    found = {}
    for part in text.split("=" * 70 + "\n")[1:]:
        head = SECTION.match(part)
        if head:
            body = part.split("-" * 70 + "\n")
            lines = [line for line in (body[1] if len(body) > 1 else "").splitlines()
                     if line and not line.startswith(" ")]
            found.setdefault(head[2], lines[-1][:200] if lines else "")
    return found


def read(text):
    """({test: Outcome}, the test that had begun when TEXT ended)"""
    outcomes, current = {}, None
    for line in text.splitlines():
        begins = BEGINS.match(line)
        if begins:
            current = begins[2]
        ends = ENDS.search(line)
        if ends and current:
            if outcomes.get(current, ("pass",))[0] in ("pass", "skip"):
                outcomes[current] = verdict_of(ends[1])
            if not line.startswith("  "):  # a subtest's line is indented
                current = None
    for test, cause in causes(text).items():
        if test in outcomes:
            outcomes[test] = Outcome(outcomes[test].verdict, cause)
    return outcomes, current


def follow(command, env, limit):
    """(status, output) of COMMAND; "timeout" after LIMIT seconds without a line."""
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    chunks, status = [], None
    with selectors.DefaultSelector() as waiter:
        waiter.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not waiter.select(limit):
                status = "timeout"
                break
            got = os.read(process.stdout.fileno(), 1 << 16)
            if not got:
                break
            chunks.append(got)
    try:
        if status:
            os.killpg(process.pid, signal.SIGKILL)
        status = status or process.wait(limit)
    except subprocess.TimeoutExpired:
        status = "timeout"
    finally:
        try:  # what it left behind
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    process.stdout.close()
    return status, b"".join(chunks).decode(errors="replace")


class Suite:
    def __init__(self, name, front, env, options):
        self.name, self.front, self.env, self.options = name, front, env, options
        self.command = [*front, options.python, "-m", "numba.runtests"]

    def modules(self):
        """{module: its tests}"""
        status, text = follow([*self.command, "-l", SUITE], self.env, self.options.limit)
        found = collections.defaultdict(list)
        for line in text.splitlines():
            if re.fullmatch(r"numba\.[\w.]+", line) and self.options.only in line:
                found[line.rsplit(".", 2)[0]].append(line)
        if not found:
            raise stack.Failed(f"no test listed ({status}): {text.strip()[-400:]}")
        return found

    def module(self, name, tests):
        """{test: Outcome} of one module."""
        outcomes, wanted = {}, [name] if not self.options.only else tests
        started = time.monotonic()
        while wanted:
            status, text = follow([*self.command, "-v", *wanted], self.env, self.options.limit)
            got, current = read(text)
            self.log(name, text)
            outcomes.update(got)
            if current or not got:  # it died
                reason = "no end" if status == "timeout" else f"ended with status {status}"
                broken = current or next(test for test in tests if test not in outcomes)
                outcomes[broken] = Outcome("crash", f"{reason}: {text.strip()[-150:]!r}")
            wanted = [test for test in tests if test not in outcomes]
        verdicts = collections.Counter(outcomes[test].verdict for test in tests)
        print(f"{self.name} {name[len(SUITE) + 1:]:44}{time.monotonic() - started:7.1f} s  "
              f"{' '.join(f'{n} {verdict}' for verdict, n in sorted(verdicts.items()))}",
              flush=True)
        return {test: outcomes[test] for test in tests}

    def log(self, name, text):
        if self.options.log:
            os.makedirs(self.options.log, exist_ok=True)
            with open(os.path.join(self.options.log, f"{self.name}.{name}.txt"), "a") as file:
                file.write(text)

    def run(self):
        outcomes = {}
        with concurrent.futures.ThreadPoolExecutor(self.options.j) as pool:
            for got in pool.map(lambda item: self.module(*item), self.modules().items()):
                outcomes.update(got)
        return outcomes


def expectations(driver):
    """{test: reason}: `DRIVER: REASON` above tests, DRIVER being software, nvidia or every."""
    expected, reason = {}, None
    with open(os.path.join(HERE, "expected.txt")) as file:
        for line in file:
            head = re.match(r"(software|nvidia|every): (.+)", line)
            if head:
                reason = head[2] if head[1] in (driver, "every") else None
            elif line.startswith("\t") and reason:
                expected[f"{SUITE}.{line.strip()}"] = reason
    return expected


def kind(outcome):
    text = re.sub(r"0x[0-9a-f]+|\b\d{3,}\b", "N", outcome.cause)
    return f"{outcome.verdict}: {text}"[:150]


def tell(outcomes, expected):
    """Prints what did not pass, grouped; True if that is what was expected."""
    groups = collections.defaultdict(list)
    for test, outcome in outcomes.items():
        if outcome.verdict not in ("pass", "skip"):
            groups[expected.get(test) or kind(outcome)].append(test)
    for cause, tests in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(tests)} × {cause}")
        for test in tests:
            mark = " " if test in expected else "!"
            print(f"  {mark} {test[len(SUITE) + 1:]}")
    skips = collections.Counter(
        outcome.cause for outcome in outcomes.values() if outcome.verdict == "skip")
    print("\nskipped: " + "; ".join(f"{n} × {cause}" for cause, n in skips.most_common()))
    mended = [test for test in expected if test in outcomes and outcomes[test].verdict == "pass"]
    for test in mended:
        print(f"passes, though expected.txt lists it: {test[len(SUITE) + 1:]}")
    count = collections.Counter(outcome.verdict for outcome in outcomes.values())
    ran = len(outcomes) - count["skip"]
    surprises = sum(test not in expected for tests in groups.values() for test in tests)
    print(f"{len(outcomes)} tests, {count['skip']} skipped; {count['pass']} of {ran} passed "
          f"({100 * count['pass'] / max(ran, 1):.1f} %), {surprises} fail unexpectedly")
    return not surprises and not mended


def differences(native, remote):
    same = True
    arms = {"natively": native, "remotely": remote}
    counts = {arm: collections.Counter(one.verdict for one in got.values()) for arm, got in arms.items()}
    verdicts = sorted(set().union(*counts.values()))
    print(f"\n{'':10}{''.join(f'{verdict:>8}' for verdict in verdicts)}")
    for arm, count in counts.items():
        print(f"{arm:10}{''.join(f'{count[verdict]:8}' for verdict in verdicts)}")
    for test in sorted(set(native) | set(remote)):
        one, other = native.get(test), remote.get(test)
        if (one and one.verdict) != (other and other.verdict):
            same = False
            print(f"differs: {test[len(SUITE) + 1:]}: natively {one and kind(one)}, "
                  f"remotely {other and kind(other)}")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, "build"))
    parser.add_argument("--driver", default="software", choices=("software", "nvidia"))
    parser.add_argument("--python", default=sys.executable, help="one with Numba 0.61")
    parser.add_argument("--native", action="store_true", help="without vcuda first, and compare")
    parser.add_argument("--only", default="", help="tests with this in their name")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a test may take")
    parser.add_argument("--log", help="a folder for what the tests print")
    parser.add_argument("-j", type=int, default=2)
    options = parser.parse_args()
    home = os.path.join(os.path.dirname(os.path.dirname(options.python)), "cuda")
    if "CUDA_HOME" not in os.environ and os.path.isdir(home):
        os.environ["CUDA_HOME"] = home
    os.environ.update(PYTHONFAULTHANDLER="1", OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="2",
                      VCUDA_SOFTGPU_MEMORY="2G")
    native, good = None, True
    try:
        if options.native:
            native = Suite("native", [], dict(os.environ), options).run()
            good = tell(native, expectations("nvidia"))
        with stack.Stack(options.dist, options.driver, pin=False) as served:
            env = dict(os.environ, VCUDA_SOCKET=served.sidecar())
            front = [served.binary("vcuda"), "run", "--"]
            remote = Suite("vcuda", front, env, options).run()
            good = tell(remote, expectations(options.driver)) and good
    except stack.Failed as error:
        sys.exit(f"tests/numba: {error}")
    if native is not None:
        good = differences(native, remote) and good
    return not good


if __name__ == "__main__":
    sys.exit(main())
