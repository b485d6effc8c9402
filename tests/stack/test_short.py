# SPDX-License-Identifier: Apache-2.0
"""Memory of the GPU that somebody beside the agent takes: told at the allocation where it is gone by then, waited for
where it was granted before, and the end of one session with its reason where it does not come back."""
import contextlib
import json
import os
import sys
import time

from stack import MIB, OUT_OF_MEMORY, Agent, App, Sidecar, folder, wait_for

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory.py")
TOTAL = 4096 * MIB  # of which a session has 64 MiB from the start, a 64th


class Short:
    def __init__(self, path):
        self.file = os.path.join(path, "others")
        self.others(0)
        self.agent = Agent(path, env={"VCUDA_SOFTGPU_MEMORY": str(TOTAL), "VCUDA_SOFTGPU_FAULT": f"others={self.file}"})
        self.sidecar = Sidecar(path, self.agent)

    def others(self, size):
        """Somebody else has so many bytes of the GPU."""
        with open(self.file + ".new", "w") as file:
            file.truncate(size)
        os.rename(self.file + ".new", self.file)

    def program(self):
        app = App(PROGRAM, program=sys.executable, socket=self.sidecar.socket)
        app.line("^ready 0 0 0$", 30)
        return app

    def warm(self):
        return json.loads(self.agent.http("/v1/agent"))["workers_ready"]


def ask(app, line):
    app.process.stdin.write(line + "\n")
    app.process.stdin.flush()
    return app.line("^" + line.split()[0] + r"((?: -?\d+)+)$", 20).group(1).strip()


@contextlib.contextmanager
def short():
    with folder() as path:
        s = Short(path)
        try:
            yield s
        except AssertionError as error:
            raise AssertionError(f"{error}\n{s.agent.log()[-1500:]}").with_traceback(error.__traceback__) from None


def test_what_was_taken_before_a_session_began_is_told_by_the_allocation():
    with short() as s:
        s.others(TOTAL - 16 * MIB)
        app = s.program()
        assert ask(app, "info") == "16"
        assert ask(app, "alloc 32") == str(OUT_OF_MEMORY)
        assert ask(app, "alloc 8") == "0" and ask(app, "use") == "0 0"
        assert ask(app, "alloc 16") == str(OUT_OF_MEMORY) and ask(app, "info") == "8"
        s.others(0)
        assert ask(app, "alloc 256") == "0" and ask(app, "use") == "0 0"
        s.others(TOTAL - 300 * MIB)
        assert ask(app, "alloc 512") == str(OUT_OF_MEMORY)
        app.close_stdin()
        app.right()


def test_what_was_granted_before_is_waited_for():
    with short() as s:
        app = s.program()
        assert ask(app, "alloc 16") == "0" and ask(app, "use") == "0 0"
        s.others(TOTAL - 17 * MIB)
        assert ask(app, "alloc 32") == "0"
        time.sleep(0.5)
        s.others(0)
        assert ask(app, "use") == "0 0"
        app.close_stdin()
        app.right()
        assert "event=memory.short" in s.agent.log()


def test_where_it_does_not_come_the_session_ends_and_says_why():
    with short() as s:
        app, beside = s.program(), s.program()
        wait_for(s.warm, 30, "a worker is warm")
        s.others(TOTAL - 1 * MIB)
        assert ask(app, "alloc 32") == "0"
        wait_for(lambda: not s.warm(), 10, "no worker is warm")
        out = str(OUT_OF_MEMORY)
        assert ask(app, "use").split()[-1] == out and ask(app, "alloc 1") == out
        app.close_stdin()
        app.process.wait(20)
        assert "32 MiB that the agent granted are not free on the GPU" in s.agent.log()
        # Nobody else's, and who comes next is served.
        s.others(0)
        assert ask(beside, "alloc 32") == "0" and ask(beside, "use") == "0 0"
        late = s.program()
        assert ask(late, "alloc 32") == "0" and ask(late, "use") == "0 0"
        for one in (beside, late):
            one.close_stdin()
            one.right()
