# SPDX-License-Identifier: Apache-2.0
"""The C interface, what Python's libraries see, and the command."""
import json
import os
import subprocess

from stack import BIN, BUILD, environment, wait_for
from tensors import tensors

PROGRAM = os.path.join(BUILD, "store", "tensor")


def test_a_c_program_makes_and_another_reads():
    with tensors() as s:
        owner = s.app("create", "squares", program=PROGRAM)
        owner.line("^sealed", 30)
        reader = s.app("get", "squares", program=PROGRAM)
        reader.line("^right: default/squares", 30)
        reader.right()
        owner.close_stdin()
        owner.right()
        late = s.app("get", "squares", program=PROGRAM)
        late.line("^error 500: there is no tensor 'default/squares'", 30)
        assert late.wait(30) == 1


def test_what_libraries_of_python_see():
    with tensors() as s:
        one = s.program()
        one("a = vcuda.create('a', 'f16', (4, 6)); b = vcuda.create('b', 'bf16', (2,)); fill(a, 1)")
        view = one("a.__cuda_array_interface__")
        assert (view["shape"], view["typestr"], view["data"][1]) == ((4, 6), "<f2", False)
        one("a.seal()")
        assert one("a.__cuda_array_interface__['data'][1]") is True
        assert "AttributeError" in one("getattr(b, '__cuda_array_interface__', 'AttributeError')")
        assert one("a.__dlpack_device__()") == (2, 0)
        assert "dltensor" in one("repr(a.__dlpack__())")
        assert "dltensor_versioned" in one("repr(a.__dlpack__(max_version=(1, 0)))")
        # What nobody took is let go of.
        assert one("__import__('vcuda.dlpack').dlpack._alive") == {}
        one.end()


def test_the_command_lists_them():
    with tensors() as s:
        one = s.program()
        one("a = vcuda.create('a', 'f16', (4, 6)); a.seal()")
        address = f"127.0.0.1:{s.agent.ports['control']}"
        got = subprocess.run([os.path.join(BIN, "vcuda"), "tensors", "--agent", address], capture_output=True, text=True,
                             timeout=30, env=environment())
        assert got.returncode == 0, got.stderr
        assert got.stdout.splitlines()[1].split() == ["sealed", "f16", "4x6", "0.0", "1", "default/a"], got.stdout
        got = subprocess.run([os.path.join(BIN, "vcuda"), "tensors", "--agent", address, "--json"], capture_output=True,
                             text=True, timeout=30, env=environment())
        assert json.loads(got.stdout)["tensors"][0]["shape"] == [4, 6]
        one.end()
        wait_for(lambda: not json.loads(s.agent.http("/v1/tensors"))["tensors"], 30, "it is gone")
