#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with a GPU and nvcc: the programs of a collection that others wrote, natively and through us,
at the sizes that their authors chose, with the same exit status and the same text.

    tests/gpu/collection.py --sources FILE.tar.xz [--under src] [--suffix -cuda] [--work DIR] [--log DIR]
                            [--seconds S] [--limit S] [--jobs N] [--builders N] [--arch sm_90]
                            [--dist .dist] [--driver nvidia|software] [NAME ...]

FILE is made by tests/collection/pack.py.  Each folder is built by its own Makefile, and its rule `run` is run
natively, then through an agent and a sidecar over loopback with the GPU's device files masked.  Where the
texts differ it runs natively twice more, and what differs between native runs is left out, as are times.
What did not end the same is tried once more at the end, with fewer beside it: others may have taken the
GPU's memory.  --seconds is a hard end: what is not finished then counts as not begun.  --work keeps what
is built and what came of it: a second call goes on there; names that are given run again.

At the end: a table, and in --log the whole of it, one file for each program that is not the same, with both texts, and
results.json with the seconds of every run.  Exit status 0 if no program failed that runs natively.

--driver software stands in for a GPU: the nvcc of `make deps`, natively is `vcuda run --software`.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import queue
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "collection"), os.path.join(ROOT, "bench", "torch")]

import compare  # noqa: E402
import run as software  # noqa: E402
import stack  # noqa: E402

BUILD_SECONDS = 120
MOST_TEXT = 1 << 20  # of a program's output that is compared
MOST_LOG = 20000
LAUNCHER = """#!/bin/sh
# $(LAUNCHER) of a collection's programs: notes how each of a rule ended.
case $1 in *=*) set -- env "$@" ;; esac
$COLLECTION_PREFIX "$@"
status=$?
echo $status >>"$COLLECTION_ENDS"
exit $status
"""
CLASSES = {
    "same": "the same status and text",
    "text differs": "the same status, text differs",
    "remote fails": "ends otherwise remotely",
    "remote too slow": "not done remotely in the larger of the limit and 3 times the native time",
    "native fails": "fails natively",
    "native too slow": "not done natively within the limit",
    "not built": "does not build here",
    "needs data": "needs data that is not there",
    "needs MPI": "needs MPI",
    "not begun": "not begun, or not finished before the end",
}
COUNTED = ("same", "text differs", "remote fails", "remote too slow")
TRIED_AGAIN = ("remote fails", "text differs", "remote too slow", "native fails")


class End(Exception):
    """The time of the whole is over."""


class Machine:
    """What programs are built and run with."""

    def __init__(self, args, served):
        self.args, self.served = args, served
        self.launcher = os.path.join(args.work, "launch.sh")
        with open(self.launcher, "w", encoding="utf-8") as file:
            file.write(LAUNCHER)
        os.chmod(self.launcher, 0o755)
        if args.driver == "software":
            self.home = software.toolkit(args.work, os.path.join(ROOT, "build"))
            self.native = f"{args.dist}/bin/vcuda run --software --"
        else:
            self.home, self.native = "/usr/local/cuda", ""
        self.remote = f"env LD_PRELOAD={served.preload} VCUDA_SOCKET={served.sidecar()}"
        self.mask = subprocess.run(stack.masked(["true"]), stderr=subprocess.DEVNULL, check=False).returncode == 0
        threads = max(1, (os.cpu_count() or 1) // args.jobs)
        self.env = dict(os.environ, PATH=f"{self.home}/bin:{os.environ['PATH']}", LC_ALL="C",
                        OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", str(threads)))
        for name, folders in self.libraries().items():
            self.env[name] = ":".join([*folders, *filter(None, [os.environ.get(name)])])
        self.variables = [f"{name}={self.home}" for name in
                          ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_DIR", "CUDADIR")]

    def libraries(self):
        """Folders with libraries of CUDA that are Python packages, for the compiler and the loader."""
        links = os.path.join(self.args.work, "link")
        os.makedirs(links, exist_ok=True)
        folders = stack.library_folders()
        for folder in folders:
            for path in glob.glob(f"{folder}/lib*.so.*"):
                link = os.path.join(links, os.path.basename(path).split(".so.")[0] + ".so")
                if not os.path.lexists(link):
                    os.symlink(path, link)
        headers = [path for path in (os.path.join(os.path.dirname(folder), "include") for folder in folders)
                   if os.path.isdir(path)]
        toolkits = [] if self.args.driver == "software" else [f"{self.home}/lib64"]
        return {"LD_LIBRARY_PATH": toolkits + folders, "LIBRARY_PATH": toolkits + [links], "CPATH": headers}

    def arch(self, folder):
        with open(os.path.join(folder, "Makefile"), encoding="utf-8", errors="replace") as file:
            values = [line.split("=", 1)[1].strip() for line in file if line.split("=")[0].strip(" :?") == "ARCH"]
        return f"ARCH={self.args.arch.removeprefix('sm_')}" if any(v.isdigit() for v in values) else f"ARCH={self.args.arch}"

    def command(self, folder, *rule):
        return ["make", "-s", "--no-print-directory", *self.variables, self.arch(folder), *rule]

    def call(self, command, folder, limit, env, log, building=False):
        """(its status or None: not done in time, seconds)"""
        begin = time.monotonic()
        left = self.args.end - begin
        if left <= 0:
            raise End
        with open(log, "wb") as out, subprocess.Popen(
                command, cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True) as child:
            try:
                status = child.wait(min(limit, left))
            except subprocess.TimeoutExpired:
                if building:  # make removes what is half written
                    os.killpg(child.pid, signal.SIGTERM)
                    time.sleep(1)
                os.killpg(child.pid, signal.SIGKILL)
                if left <= limit:
                    raise End from None
                status = None
        return status, time.monotonic() - begin

    def build(self, folder, log):
        command = self.command(folder)
        if (os.cpu_count() or 1) >= 8:
            command.insert(1, "-j4")
        return self.call(["nice", "-n", "10", *command], folder, BUILD_SECONDS, self.env, log,
                         building=True)

    def run(self, name, way, limit, count):
        """One run of the rule `run`: {ends, seconds, text}; ends has None for what was not done in time."""
        folder = self.args.folder(name)
        log = os.path.join(self.args.work, "logs", f"{name}.{way}.{count}")
        ends = log + ".ends"
        for path in (log, ends):
            if os.path.exists(path):
                os.unlink(path)
        prefix = self.native if way == "native" else self.remote
        with open(os.path.join(folder, "Makefile"), encoding="utf-8", errors="replace") as file:
            hook = "$(LAUNCHER)" in file.read()
        command = self.command(folder, "run", f"LAUNCHER={self.launcher}")
        if not hook:
            command = prefix.split() + command
        if way == "remote" and self.mask:
            command = stack.masked(command)
        status, seconds = self.call(command, folder, limit, dict(
            self.env, COLLECTION_PREFIX=prefix, COLLECTION_ENDS=ends), log)
        found = [status]
        if status is not None and os.path.exists(ends):
            with open(ends, encoding="utf-8") as file:
                found = [int(line) for line in file] + [status]  # make's own last
        with open(log, "rb") as file:
            text = file.read(MOST_TEXT).decode(errors="replace")
        return {"ends": found, "seconds": round(seconds, 3), "text": text}


class Collection:
    def __init__(self, args, machine):
        self.args, self.machine = args, machine
        self.kept = os.path.join(args.work, "results")
        os.makedirs(self.kept, exist_ok=True)
        self.results, self.begin = {}, time.monotonic()
        for path in glob.glob(os.path.join(self.kept, "*.json")):
            with open(path, encoding="utf-8") as file:
                self.results[os.path.basename(path)[:-5]] = json.load(file)

    def note(self, name, ended, **more):
        self.results[name] = dict(ended=ended, **more)
        with open(os.path.join(self.kept, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(self.results[name], file)
        print(f"{time.monotonic() - self.begin:6.1f} s  {ended:16} {name} {more.get('why', '')}"[:160], flush=True)

    def build(self, name):
        """Whether there is something to run."""
        folder = self.args.folder(name)
        built, log = os.path.join(folder, ".built"), os.path.join(self.args.work, "logs", name + ".build")
        if os.path.exists(built):
            return True
        if not os.path.exists(os.path.join(folder, "Makefile")):
            self.note(name, "not built", why="no Makefile")
            return False
        with open(os.path.join(folder, "Makefile"), encoding="utf-8", errors="replace") as file:
            if software.MPI.search(file.read()) and not shutil.which("mpicxx"):
                self.note(name, "needs MPI")
                return False
        absent = software.missing(folder, self.machine.variables, self.machine.env)
        if absent:
            self.note(name, "needs data", why=absent)
            return False
        status, seconds = self.machine.build(folder, log)
        if status != 0:
            with open(log, "rb") as file:
                text = file.read().decode(errors="replace")
            lines = [line for line in text.splitlines() if "rror" in line or "cannot find" in line] or text.splitlines()
            self.note(name, "not built", why=f"not in {BUILD_SECONDS} s" if status is None else (lines or ["?"])[0][:120],
                      build=text, build_seconds=round(seconds, 1))
            return False
        with open(built, "w", encoding="utf-8"):
            return True

    def run(self, name, tries):
        """Natively, remotely, and natively again where the texts differ."""
        natives = [self.machine.run(name, "native", self.args.limit, 0)]
        first = natives[0]
        if any(first["ends"]) or None in first["ends"]:
            slow = None in first["ends"]
            self.note(name, "native too slow" if slow else "native fails", tries=tries, natives=natives,
                      why="" if slow else f"{first['ends']} {last_line(first['text'])}")
            return
        limit = max(self.args.limit, 3 * first["seconds"])
        remote = self.machine.run(name, "remote", limit, 0)
        ended = "same"
        if None in remote["ends"]:
            ended, why = "remote too slow", f"{first['seconds']:.1f} s natively"
        elif remote["ends"] != first["ends"]:
            ended, why = "remote fails", f"{remote['ends']} {last_line(remote['text'])}"
        else:
            while why := compare.unlike([one["text"] for one in natives], remote["text"]):
                if len(natives) == 3:
                    ended = "text differs"
                    break
                natives.append(self.machine.run(name, "native", limit, len(natives)))
        self.note(name, ended, tries=tries, why=why or "", natives=natives, remote=remote)

    def all(self, names):
        """Builds by some, runs by others as soon as something is built; then once more what was not the same."""
        ready, wanted = queue.Queue(), [name for name in names if self.wanted(name)]

        def build(name):
            try:
                if self.build(name):
                    ready.put(name)
            except End:
                self.note(name, "not begun")

        def work(tries):
            for name in iter(ready.get, None):
                try:
                    self.run(name, tries)
                except End:
                    if tries == 1:
                        self.note(name, "not begun")
                except OSError as error:
                    self.note(name, "not begun", why=str(error))

        def start(count, tries):
            threads = [threading.Thread(target=work, args=(tries,)) for _ in range(count)]
            for thread in threads:
                thread.start()
            return threads

        def finish(threads):
            for _ in threads:
                ready.put(None)
            for thread in threads:
                thread.join()

        runners = start(self.args.jobs, 1)
        with concurrent.futures.ThreadPoolExecutor(self.args.builders) as pool:
            list(pool.map(build, wanted))
        finish(runners)
        for ended in TRIED_AGAIN:
            for name in wanted:
                if self.results.get(name, {}).get("ended") == ended:
                    ready.put(name)
        finish(start(max(1, self.args.jobs // 4), 2))

    def wanted(self, name):
        found = self.results.get(name)
        return name in self.args.names or not found or found["ended"] == "not begun"


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("make")]
    return lines[-1][:120] if lines else ""


def unpack(args):
    """The sources into --work, once; the names in the order of the tar's ORDER, the others after them."""
    mark = os.path.join(args.work, "unpacked")
    if not os.path.exists(mark):
        with tarfile.open(args.sources) as tar:
            tar.extractall(args.work, filter="data")
        with open(mark, "w", encoding="utf-8"):
            pass
    found = sorted(folder[:-len(args.suffix)] for folder in os.listdir(os.path.join(args.work, args.under))
                   if folder.endswith(args.suffix))
    order = os.path.join(args.work, "ORDER")
    if os.path.exists(order):
        with open(order, encoding="utf-8") as file:
            place = {name: i for i, name in enumerate(file.read().split())}
        found.sort(key=lambda name: place.get(name, len(place)))
    unknown = set(args.names) - set(found)
    if unknown:
        sys.exit(f"collection.py: no {', '.join(sorted(unknown))} in {args.sources}")
    return args.names or found


def write_logs(args, results, whole):
    os.makedirs(args.log, exist_ok=True)
    with open(os.path.join(args.log, "table.txt"), "w", encoding="utf-8") as file:
        file.write(whole + "\n")

    def cut(text):
        return text if len(text) <= MOST_LOG else text[:MOST_LOG // 2] + "\n…\n" + text[-MOST_LOG // 2:]

    kept = {}
    for name, found in results.items():
        found = dict(found)
        texts = [("build", found.pop("build", ""))]
        for i, one in enumerate(found.get("natives", [])):
            texts.append((f"natively, {one['ends']}, {one['seconds']} s", one["text"]))
            found["natives"][i] = {"ends": one["ends"], "seconds": one["seconds"]}
        if "remote" in found:
            one = found["remote"]
            texts.append((f"remotely, {one['ends']}, {one['seconds']} s", one["text"]))
            found["remote"] = {"ends": one["ends"], "seconds": one["seconds"]}
        kept[name] = found
        if found["ended"] not in ("same", "not begun", "needs MPI", "needs data"):
            with open(os.path.join(args.log, f"{name}.txt"), "w", encoding="utf-8") as file:
                file.write(f"{found['ended']}: {found.get('why', '')}\n")
                for title, text in texts:
                    if text:
                        file.write(f"===== {title}\n{cut(text)}\n")
    with open(os.path.join(args.log, "results.json"), "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1, sort_keys=True)
    for path in glob.glob(os.path.join(args.work, "stack", "*.log")):
        shutil.copy(path, args.log)


def table(names, results, short):
    """(text, whether all that run natively are the same); SHORT: below 8000 characters"""
    by_class, lines = collections.defaultdict(list), []
    for name in names:
        by_class[results.get(name, {"ended": "not begun"})["ended"]].append(name)
    for ended, what in CLASSES.items():
        some = by_class[ended]
        said = ": " + " ".join(some) if some and ended != "same" else ""
        most = 700 if ended in COUNTED else 350
        if short and len(said) > most:
            said = said[:most].rsplit(" ", 1)[0] + " …"
        lines.append(f"{len(some):5} {what}{said}")
    for ended in ("remote fails", "text differs"):
        lines += [f"  {name}: {results[name]['why'][:130]}" for name in by_class[ended][:9 if short else None]]
    ratios = sorted((found["remote"]["seconds"] / found["natives"][0]["seconds"], name)
                    for name, found in results.items() if name in names and found["ended"] in ("same", "text differs")
                    and found["natives"][0]["seconds"] > 0.5)
    if ratios:
        worst = ", ".join(f"{name} {ratio:.2f} ({results[name]['natives'][0]['seconds']:.1f} s)"
                          for ratio, name in (ratios[:-6:-1] if short else ratios[::-1]))
        lines.append(f"remote/native time of {len(ratios)} that take more than 0.5 s: median "
                     f"{statistics.median(ratio for ratio, _ in ratios):.2f}, worst {worst}")
    counted = sum(len(by_class[ended]) for ended in COUNTED)
    lines.append(f"{len(by_class['same'])} of {counted} that run natively are the same, of {len(names)} programs")
    return "\n".join(lines), counted == len(by_class["same"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--sources", required=True)
    parser.add_argument("--under", default="src")
    parser.add_argument("--suffix", default="-cuda")
    parser.add_argument("--work", default="/tmp/vcuda-collection-gpu")
    parser.add_argument("--log")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--limit", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--builders", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--driver", choices=("nvidia", "software"), default="nvidia")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    args.end = time.monotonic() + args.seconds
    args.work, args.dist = os.path.abspath(args.work), os.path.abspath(args.dist)
    args.log = os.path.abspath(args.log or os.path.join(args.work, "log"))
    args.folder = lambda name: os.path.join(args.work, args.under, name + args.suffix)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.makedirs(os.path.join(args.work, "logs"), exist_ok=True)
    shutil.rmtree(os.path.join(args.work, "stack"), ignore_errors=True)
    names = unpack(args)
    libraries = [] if args.driver == "software" else ["/usr/local/cuda/lib64", *stack.library_folders()]
    with stack.Stack(args.dist, args.driver, log=os.path.join(args.work, "stack"), libraries=libraries,
                     options=["--warm", str(max(1, args.jobs // 2))], pin=False) as served:
        machine = Machine(args, served)
        if not machine.mask:
            print("the GPU's device files are not masked: no mount namespace here")
        collection = Collection(args, machine)
        collection.all(names)
        alive = all(process.poll() is None for process in served.processes)
    if not alive:
        print("THE AGENT OR THE SIDECAR ENDED: see agent.log, sidecar-0.log")
    text, passed = table(names, collection.results, short=True)
    print("\n" + text)
    whole, _ = table(names, collection.results, short=False)
    write_logs(args, collection.results, whole)
    return 0 if passed and alive else 1


if __name__ == "__main__":
    sys.exit(main())
