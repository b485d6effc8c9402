# SPDX-License-Identifier: Apache-2.0
"""What is refused: a session that was attached, and that its agent then refuses to open (the program is told, and keeps
nothing of the sidecar's and the agent's while it goes on without a GPU); functions newer than the agent's driver."""
import sys

from peer import FRAME, HELLO
from proxy import Proxy
from stack import App, stack, wait_for

MISMATCH = 803  # CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
for _ in range(2):
    print("init", cuda.cuInit(0), flush=True)
sys.stdin.readline()
"""


class Ageing(Proxy):
    """To the agent the first frame of each connection, vcudaOpen, is of a version that there is not."""

    def write(self, flow):
        due, data = flow.pieces[0]
        at = HELLO.size + FRAME.size - getattr(flow, "sent", 0)
        if flow.frames.greeting == HELLO.size and 0 <= at < len(data):
            data = bytearray(data)
            data[at] ^= 0x55
            flow.pieces[0] = due, memoryview(data)
        before = flow.bytes
        super().write(flow)
        flow.sent = getattr(flow, "sent", 0) + before - flow.bytes


def test_what_is_refused_is_let_go_at_once():
    with stack(between=Ageing) as s:
        app = App("-c", PROGRAM, program=sys.executable, socket=s.sidecar.socket)
        for _ in range(2):
            app.line(f"^init {MISMATCH}$", 20)
        wait_for(lambda: not s.agent.sessions(), 5, "the agent's session is over while the program lives")
        app.close_stdin()
        app.right()


NEW = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
print("new", runtime.cudaMemGetLocationInfo(None, 0, 0, None, None), runtime.cudaGetLastError())
print("old", runtime.cudaImportExternalMemory(None, None), runtime.cudaGetLastError())
"""


def test_what_is_newer_than_the_agents_driver_says_so():
    """cudaMemGetLocationInfo came with CUDA 13.5: an older driver lacks it, a newer one's is not served."""
    for release, answer in ("13.0", 36), ("13.5", 801):
        with stack(agent_env={"VCUDA_SOFTGPU_DRIVER_VERSION": release}) as s:
            app = App("-c", NEW, program=sys.executable, socket=s.sidecar.socket)
            app.line(f"^new {answer} {answer}$", 20)
            app.line("^old 801 801$", 20)
            app.close_stdin()
            app.right()
