# SPDX-License-Identifier: Apache-2.0
"""The sidecar's memory when its programs are gone: not what its busiest moment had, however many programs there were
and however often their connections broke."""
import os

from proxy import Proxy
from stack import MIB, stack, wait_for

PAGE = 4096
ARENA = 64 * MIB  # malloc's: as large, and at a multiple of that
PROGRAMS = 24
CUTS = 3
ARENAS = 4
# Of its heap: what it has is 200 KiB, of which libraries have most; each program had 400 KiB, each thread that was
# there may have left 130 KiB in an arena.
MOST = 384 << 10


def mappings(pid):
    """(first, behind the last, rights, name, bytes that are its own) of each."""
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                first, behind = (int(at, 16) for at in words[0].split("-"))
                one = first, behind, words[1], words[5] if len(words) > 5 else ""
            elif words[0] == "Anonymous:":
                yield *one, int(words[1]) << 10


def heap(sidecar):
    """Bytes of memory that malloc has, and in how many arenas."""
    size, arenas, last = 0, 1, None
    for first, behind, rights, name, own in mappings(sidecar.pid):
        if name == "[heap]":
            size += own
        elif last and rights == "---p" and last[1] == first and last[0] + ARENA == behind:
            size += last[2]
            arenas += 1
        last = (first, behind, own) if first % ARENA == 0 and rights == "rw-p" and not name else None
    return size, arenas


def stacks(sidecar):
    """(how many threads' stacks are mapped, how many threads there are): a stack has a page before it that is none's."""
    size, last = 0, None
    for first, behind, rights, name, _ in mappings(sidecar.pid):
        if last and rights == "rw-p" and not name and last[2] == "---p" and last[1] == first:
            size += last[1] - last[0] == PAGE
        last = (first, behind, rights)
    return size, len(os.listdir(f"/proc/{sidecar.pid}/task")) - 1  # the first one's has a name


def test_programs_and_cuts_leave_no_memory_behind_in_the_sidecar():
    with stack(between=Proxy) as s:
        for _ in range(2):
            apps = [s.app("hold", 4096) for _ in range(PROGRAMS)]
            for app in apps:
                app.line("^holding", 30)
            for _ in range(CUTS):
                resumed = s.sidecar.log().count("event=channel.resumed")
                s.between.cut()
                wait_for(lambda: s.sidecar.log().count("event=channel.resumed") >= resumed + PROGRAMS, 30,
                         "all are resumed")
            for app in apps:
                app.close_stdin()
            for app in apps:
                app.right()
        last = []

        def given_back():
            last[:] = *heap(s.sidecar), *stacks(s.sidecar)
            return last[0] <= MOST and last[2] <= last[3]
        try:
            wait_for(given_back, 10, "the memory is given back")
        except AssertionError:
            raise AssertionError(f"{last[0] >> 10} KiB of heap, not {MOST >> 10}, in {last[1]} arenas; {last[2]} stacks of "
                                 f"{last[3]} threads") from None
        assert last[1] <= ARENAS, f"{last[1]} arenas"
        s.between.close()
