# SPDX-License-Identifier: Apache-2.0
"""What the tests of the store are written with: a stack with a store, and programs that are told line by line."""
import ast
import contextlib
import os
import sys

from stack import LIB, App, Sidecar, children, folder, stack, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20


class Failed(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status} {text}")
        self.status, self.text = status, text


class Program(App):
    """tests/store/shell.py."""

    def __init__(self, socket, ready=True, **more):
        super().__init__(os.path.join(HERE, "shell.py"), socket=socket, program=sys.executable, **more)
        if ready:
            self("context()")

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self, seconds=30):
        got = self.line(r"^([=!]) (.*)$", seconds)
        if got.group(1) == "!":
            status, _, text = got.group(2).partition(" ")
            raise Failed(int(status) if status.isdigit() else status, text)
        with contextlib.suppress(ValueError, SyntaxError):
            return ast.literal_eval(got.group(2))
        return got.group(2)

    def __call__(self, line, seconds=30):
        self.send(line)
        return self.answer(seconds)

    def fails(self, line, status, *needles):
        """The sentence."""
        try:
            got = self(line)
        except Failed as error:
            assert error.status == status, f"{line}: {error}, not {status}"
            for needle in needles:
                assert needle in error.text, f"{line}: '{needle}' is not in: {error.text}"
            return error.text
        raise AssertionError(f"{line}: {got}, not error {status}")

    def end(self):
        self.close_stdin()
        self.right()


@contextlib.contextmanager
def tensors(*flags, bytes="512MiB", sidecar=(), agent_env=None, driver="software"):
    """A stack with a store; .program() starts one."""
    flags = ("--set", f"store.bytes={bytes}", *flags)
    with stack(agent=flags, sidecar=sidecar, agent_env=agent_env, driver=driver) as s:
        s.program = lambda **more: Program(s.sidecar.socket, **more)
        yield s


class Native(Program):
    """The same on the agent's own node, without vcuda: the machine's driver and the agent's Unix socket."""

    def __init__(self, path, socket, token="", ready=True):
        libraries = os.path.join(path, "native")
        os.makedirs(libraries, exist_ok=True)
        for name, of in (("libcuda.so.1", "libvcuda-softgpu.so"), ("libvcuda-tensor.so", "libvcuda-tensor.so")):
            if not os.path.lexists(os.path.join(libraries, name)):
                os.symlink(os.path.join(LIB, of), os.path.join(libraries, name))
        super().__init__(None, ready, preload=False, env={
            "LD_LIBRARY_PATH": libraries, "VCUDA_TENSOR_SOCKET": socket, "VCUDA_TOKEN_FILE": token or None})


def bytes_of(agent):
    """The store's memory by state, as /metrics tells it."""
    return {line.split('"')[1]: int(line.rsplit(None, 1)[1]) for line in agent.http("/metrics").splitlines()
            if line.startswith("vcuda_agent_tensor_bytes{")}


def store_of(agent):
    return wait_for(lambda: children(agent.pid, "agent-store"), 30, "the agent has a store")[0]


__all__ = ["App", "Failed", "MIB", "Native", "Program", "Sidecar", "children", "folder", "store_of", "tensors", "wait_for"]
