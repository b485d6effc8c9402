#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every wait has an end: finds calls that may wait without one, and what this table says of them; and waits whose
end is a time of the day.

A wait that is not in the table is a fault, named with its line; so is a line of the table that no
wait needs any more.  docs/SECURITY.md ("What may block") has the waits inside of drivers and
libraries, which no source shows.  Exit status 1 with a fault.

    tools/waits.py           checks
    tools/waits.py --test    shows that it finds each kind of wait
"""
import collections
import os
import re
import subprocess
import sys

FOLDERS = "common command gpu-agent protocol shim sidecar softgpu transport".split()

# What waits without a deadline by itself. `(?:[^;])*?` is the call's arguments, over several lines.
KINDS = {
    "condition": r"\b(?:pthread_cond_wait|cnd_wait)\s*\(",
    "semaphore": r"\bsem_wait\s*\(",
    "poll": r"\bpoll\s*\([^;]*?,\s*-1\s*\)|\bppoll\s*\([^,;]*,[^,;]*,\s*NULL\b",
    "epoll": r"\bepoll_p?wait2?\s*\([^;]*?,\s*-1\s*[,)]",
    "select": r"\bp?select\s*\([^;]*?,\s*NULL\s*\)",
    "futex": r"\bFUTEX_WAIT\w*\s*,[^,;]*,\s*(?:NULL|0)\s*[,)]",
    "signal": r"\b(?:pause|sigwait|sigwaitinfo|sigsuspend)\s*\(",
    "child": r"\b(?:wait\s*\(|wait[34]?pid\s*\([^;]*?,\s*0\s*\)|waitid\s*\((?![^;]*WNOHANG))",
    "thread": r"\b(?:pthread_join|thrd_join)\s*\(",
    "barrier": r"\bpthread_barrier_wait\s*\(",
    "lock": r"\b(?:flock\s*\([^;]*?,\s*LOCK_(?:EX|SH)\s*\)|F_SETLKW|lockf\s*\([^;]*?,\s*F_LOCK\b)",
}

# Waits whose end the clock of the day says: when that is set back they are longer by as much.
DAY = (r"\b(?:sem_timedwait|pthread_(?:mutex_timed|rwlock_timed)\w+|pthread_timedjoin_np|mq_timed\w+)\s*\(",
       r"\bclock_gettime\s*\(\s*CLOCK_REALTIME\s*,\s*&(\w+)\)(?:(?!\n\})[\s\S])*?\bpthread_cond_timedwait\s*\([^;]*&\1\b")

# (file, kind): how many, and what ends them.
ALLOWED = {
    ("command/service_manager.c", "poll"): (2,
        "the manager of a program's own services waits for the program's end, which closes its pipe; the "
        "program for the manager's report, which services_start bounds, or for a signal"),
    ("command/service_manager.c", "child"): (1,
        "its pipe is closed, and services_end kills what does not end"),
    ("command/spawn.c", "child"): (2, "it was killed, or closed its output: a tool that people run"),
    ("gpu-agent/front/images.c", "thread"): (1, "it has said that it ends"),
    ("gpu-agent/sandbox/sandbox.c", "child"): (1, "nvidia-modprobe has an alarm of 30 s"),
    ("gpu-agent/supervisor/supervisor.c", "child"): (1, "at the very end; it was killed"),
    ("gpu-agent/worker/loop/beside.c", "semaphore"): (1, "a thread whose work is to wait for jobs"),
    ("gpu-agent/worker/loop/beside_call.c", "semaphore"): (1,
        "the loop for a call that is served in its place, as if it served it; that call for the loop's next turn"),
    ("gpu-agent/worker/driver/host_function.c", "condition"): (1,
        "a thread of the driver's, until the program ran its host function; callback_over at the "
        "session's end"),
    ("gpu-agent/worker/worker.c", "signal"): (1, "the other thread is in worker_leave and ends the process"),
    ("shim/driver/memory/pages/page_fault.c", "condition"): (1, "a thread whose work is to wait for faults"),
    ("shim/libraries/cupti/deliver.c", "condition"): (1, "a thread whose work is to wait until records are many"),
    ("shim/engine/attach/own_sidecar.c", "child"): (1, "the child forks and exits at once"),
    ("sidecar/agents/agents.c", "thread"): (1, "each asks its agent with a deadline"),
    ("gpu-agent/worker/staging/stripe.c", "thread"): (1, "joined when it said that it is over"),
    ("gpu-agent/worker/staging/stripe_send.c", "thread"): (1, "it has said that it is over"),
    ("sidecar/channel/resume.c", "thread"): (1, "it said that it is done, or was told to stop: an attempt has 3 s"),
    ("sidecar/stripes/stripes.c", "thread"): (2, "it was told to stop, and its link is shut"),
    ("sidecar/server/server.c", "thread"): (1, "it ends at once"),
    ("softgpu/driver/queue_wait.c", "condition"): (1,
        "as cuStreamSynchronize waits: until the stream's work ends. A worker's loop makes no such call"),
    ("softgpu/cupti/backlog.c", "condition"): (1, "the profiler's thread, which has nothing to do until records come"),
    ("softgpu/nccl/comm.c", "thread"): (2,
        "threads that make communicators, each step with a deadline; the communicator's, which ends by close_by"),
    ("softgpu/nccl/window.c", "thread"): (1, "it was told to stop, and its connections are shut"),
    ("softgpu/nccl/task.c", "condition"): (1,
        "the communicator's thread, whose work is to wait for streams; when it closes there is a deadline"),
    ("softgpu/ptx/run/launch.c", "condition"): (2,
        "threads whose work is to wait for kernels; and a launch for those that are in its blocks"),
}


def waits_of(text):
    """(line, kind) of each in a file's text."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    for kind, pattern in KINDS.items():
        for found in re.finditer(pattern, text):
            yield text.count("\n", 0, found.start()) + 1, kind
    for pattern in DAY:
        for found in re.finditer(pattern, text):
            yield text.count("\n", 0, found.start()) + 1, "day"


def find(top):
    files = subprocess.run(["git", "ls-files", *FOLDERS], cwd=top, capture_output=True, text=True,
                           check=True).stdout.split("\n")
    for name in files:
        if name.endswith((".c", ".h")) and "/tests/" not in name and "/generated/" not in name:
            with open(os.path.join(top, name), encoding="utf-8") as file:
                for line, kind in waits_of(file.read()):
                    yield name, line, kind


def faults_of(waits, allowed):
    have = collections.Counter((name, kind) for name, _, kind in waits)
    for name, line, kind in waits:
        if have[name, kind] > allowed.get((name, kind), (0,))[0]:
            yield f"{name}:{line}: a wait whose end the clock of the day says; use wait_deadline() of " \
                  "common/wait.h and CLOCK_MONOTONIC" if kind == "day" else \
                  f"{name}:{line}: a wait without a deadline ({kind}); give it one, or say in " \
                  "tools/waits.py what ends it"
    for (name, kind), (count, _) in allowed.items():
        if have[name, kind] < count:
            yield f"tools/waits.py: {name} has {have[name, kind]} waits of kind {kind}, not {count}"


def test():
    """Each kind of wait is found, and none where there is a deadline."""
    endless = {
        "condition": "pthread_cond_wait(&c, &l);", "semaphore": "sem_wait(&s);",
        "poll": "poll(fds, 2,\n\t-1);", "epoll": "epoll_wait(e, events, 8, -1);",
        "select": "select(n, &in, NULL, NULL, NULL);",
        "futex": "syscall(SYS_futex, w, FUTEX_WAIT, v, NULL, NULL, 0);", "signal": "pause();",
        "child": "waitpid(pid, &status, 0);", "thread": "pthread_join(t, NULL);",
        "barrier": "pthread_barrier_wait(&b);", "lock": "flock(fd, LOCK_EX);",
        "day": "clock_gettime(CLOCK_REALTIME, &t);\nt.tv_sec++;\npthread_cond_timedwait(&c, &l, &t);",
    }
    ends = ("pthread_cond_timedwait(&c, &l, &t);", "sem_clockwait(&s, CLOCK_MONOTONIC, &t);", "poll(fds, 2, 10);",
            "ppoll(fds, 5, &timeout, NULL);", "epoll_wait(e, events, 8, ms);",
            "select(n, &in, NULL, NULL, &t);", "syscall(SYS_futex, w, FUTEX_WAIT, v, &t, NULL, 0);",
            "waitpid(pid, &status, WNOHANG);", "wait_pause();", "flock(fd, LOCK_EX | LOCK_NB);",
            "clock_gettime(CLOCK_REALTIME, &now);\n}\npthread_cond_timedwait(&c, &l, &t);", "/* pause(); */", "// sem_wait(&s);")
    for kind, text in endless.items():
        if [k for _, k in waits_of(text)] != [kind]:
            sys.exit(f"waits.py --test: not found as {kind}: {text}")
    for text in ends:
        if list(waits_of(text)):
            sys.exit(f"waits.py --test: has an end: {text}")
    if len(list(faults_of([("a.c", 1, "poll")], {}))) != 1 or \
            len(list(faults_of([], {("a.c", "poll"): (1, "")}))) != 1 or \
            list(faults_of([("a.c", 1, "poll")], {("a.c", "poll"): (1, "")})):
        sys.exit("waits.py --test: the table is not held")
    print(f"waits: {len(endless)} kinds are found")


def main():
    found = list(find(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")))
    faults = list(faults_of(found, ALLOWED))
    for fault in faults:
        print(fault)
    print(f"waits: {len(found)} without a deadline of their own, {len(faults)} faults")
    if not faults and "--test" in sys.argv[1:]:
        test()
    sys.exit(1 if faults or not found else 0)


if __name__ == "__main__":
    main()
