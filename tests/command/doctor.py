# SPDX-License-Identifier: Apache-2.0
"""`vcuda doctor` and `vcuda status`: each thing that can be wrong is made wrong, and named."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

for folder in "peer", "stack":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import stack  # noqa: E402
from peer import BUILD, Agent, Sidecar  # noqa: E402

VCUDA = os.path.join(BUILD, "bin", "vcuda")
LIB = os.path.realpath(os.path.join(BUILD, "lib"))


def run(*words, **env):
    full = {k: v for k, v in os.environ.items()
            if k not in ("VCUDA_SOCKET", "REMOTE_GPU_ADDRESS", "LD_PRELOAD")}
    return subprocess.run([VCUDA, *words], capture_output=True, text=True, timeout=60,
                          env=dict(full, **env))


def doctor(*words, **env):
    """(exit status, [(check, state, text)])"""
    got = run("doctor", "--json", *words, **env)
    answer = json.loads(got.stdout)
    assert answer["ok"] == (got.returncode == 0)
    return got.returncode, [(c["check"], c["state"], c["text"]) for c in answer["checks"]]


class Doctor(unittest.TestCase):
    def states(self, checks, name):
        return [(state, text) for check, state, text in checks if check == name]

    def compiled(self, source, *flags):
        path = os.path.join(self.folder.name, "program")
        subprocess.run(["cc", "-x", "c", "-", "-o", path, *flags], input=source, text=True,
                       check=True)
        return path

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="vcuda-test-")
        self.addCleanup(self.folder.cleanup)

    def test_all_right(self):
        with stack.stack(sidecar=("--ipc", "host")) as real:
            status, checks = doctor(VCUDA_SOCKET=real.sidecar.socket)
            self.assertEqual(status, 0, checks)
            self.assertEqual({state for _, state, _ in checks}, {"ok"})
            self.assertEqual({check for check, _, _ in checks},
                             {"libraries", "sidecar", "version", "ipc", "agent", "attach", "wire"})
            self.assertIn("1 GPU", self.states(checks, "attach")[0][1])
            self.assertRegex(self.states(checks, "wire")[0][1],
                             r"^native with [0-4] stripes, compress auto, copies to the device at \d+\.\d\d GB/s$")
            plain = run("doctor", VCUDA_SOCKET=real.sidecar.socket).stdout.splitlines()
            self.assertEqual(len(plain), len(checks))
            got = run("status", VCUDA_SOCKET=real.sidecar.socket)
            self.assertIn("pid %d" % real.sidecar.pid, got.stdout)
            got = run("status", "--json", VCUDA_SOCKET=real.sidecar.socket)
            self.assertEqual(json.loads(got.stdout)["totals"]["attached"], 2)
        stack.clean()

    def test_several_gpus_and_their_peers(self):
        with stack.stack(agent_env={"VCUDA_SOFTGPU_DEVICES": "3"}) as real:
            _, checks = doctor(VCUDA_SOCKET=real.sidecar.socket)
            text = self.states(checks, "attach")[0][1]
            self.assertIn("3 GPUs", text)
            self.assertIn("they reach each other's memory", text)
        stack.clean()

    def test_what_only_attaching_shows(self):
        agent = Agent()
        sidecar = Sidecar(agent, "pod", "--shm-size", "4Mi")
        status, checks = doctor(VCUDA_SOCKET=sidecar.path)
        self.assertEqual(status, 1)
        self.assertEqual([check for check, state, _ in checks if state != "ok"], ["attach"])
        text = self.states(checks, "attach")[0][1]
        self.assertIn("cuInit answers 2", text)
        self.assertIn("(shm_size)", text)
        agent.close()
        sidecar.stop()

    def test_no_sidecar(self):
        missing = self.folder.name + "/none.sock"
        status, checks = doctor(VCUDA_SOCKET=missing)
        self.assertEqual(status, 1)
        (state, text), = self.states(checks, "sidecar")
        self.assertEqual(state, "wrong")
        self.assertIn(missing, text)
        self.assertIn("vcuda run", text)
        self.assertEqual(run("status", VCUDA_SOCKET=missing).returncode, 1)

    def test_no_agent_configured(self):
        sidecar = Sidecar()
        status, checks = doctor(VCUDA_SOCKET=sidecar.path)
        self.assertEqual(status, 1)
        self.assertIn("--agent", self.states(checks, "agent")[0][1])
        sidecar.stop()

    def test_agent_unreachable(self):
        agent = Agent()
        agent.close()
        status, checks = doctor("--agent", "127.0.0.1:%d" % agent.port)
        self.assertEqual(status, 1)
        self.assertIn(str(agent.port), self.states(checks, "agent")[0][1])

    def test_agent_that_wants_a_token(self):
        agent = Agent(lambda fields, hello: fields.update(status=800, text=b"the token is wrong"))
        status, checks = doctor("--agent", "127.0.0.1:%d" % agent.port)
        self.assertEqual(status, 0)
        self.assertEqual(self.states(checks, "agent")[0][0], "note")
        token = os.path.join(self.folder.name, "token")
        with open(token, "w") as f:
            f.write("wrong\n")
        status, checks = doctor("--agent", "127.0.0.1:%d" % agent.port, "--token-file", token)
        self.assertEqual(status, 1)
        self.assertIn("the token is wrong", self.states(checks, "agent")[0][1])
        agent.close()

    def test_agent_of_another_version(self):
        agent = Agent(lambda fields, hello: fields.update(version=9))
        status, checks = doctor("--agent", "127.0.0.1:%d" % agent.port)
        self.assertEqual(status, 1)
        self.assertIn("version 9", self.states(checks, "agent")[0][1])
        agent.close()

    def program(self, path):
        agent = Agent()
        status, checks = doctor("--agent", "127.0.0.1:%d" % agent.port, path)
        agent.close()
        return status, [c for c in checks if c[0] not in ("libraries", "agent")]

    def test_program_that_is_not_there(self):
        status, checks = self.program("/nonexistent/program")
        self.assertEqual((status, checks[0][:2]), (1, ("program", "wrong")))

    def test_program_that_is_none(self):
        path = os.path.join(self.folder.name, "text")
        with open(path, "w") as f:
            f.write("hello\n")
        status, checks = self.program(path)
        self.assertEqual(status, 1)
        self.assertIn("no 64-bit program", checks[0][2])

    def test_script(self):
        path = os.path.join(self.folder.name, "script")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n")
        status, checks = self.program(path)
        self.assertEqual(status, 0)
        self.assertEqual([c[:2] for c in checks],
                         [("program", "note"), ("program", "ok"), ("loads", "note")])

    def test_statically_linked(self):
        status, checks = self.program(self.compiled("int main(void){return 0;}", "-static"))
        self.assertEqual(status, 1)
        self.assertIn("statically linked", checks[0][2])

    def test_musl(self):
        path = self.compiled("int main(void){return 0;}",
                             "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        status, checks = self.program(path)
        self.assertEqual(status, 1)
        self.assertIn("musl", checks[0][2])

    def library(self, soname):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-Wl,-soname," + soname, "-o",
                        os.path.join(self.folder.name, "libx.so")], input="int x;", text=True,
                       check=True)
        return ["-Wl,--no-as-needed", "-L" + self.folder.name, "-lx"]

    def test_libraries_that_are_served(self):
        for name in ("libcudart.so.12", "libcudart.so.13", "libcuda.so.1"):
            path = self.compiled("int main(void){return 0;}", *self.library(name))
            status, checks = self.program(path)
            self.assertEqual(status, 0, checks)
            self.assertIn(("loads", "ok", name + " from vcuda"), checks)

    def test_libraries_that_are_not(self):
        path = self.compiled("int main(void){return 0;}", *self.library("libcudnn_none.so.1"))
        status, checks = self.program(path)
        self.assertEqual(status, 1)
        self.assertIn("does not serve it", self.states(checks, "loads")[0][1])

    RUNTIME = ('__attribute__((section(".nv_fatbin"))) int code = 1;'
               "int cudaMalloc(void); int cudaMalloc(void) { return code; }"
               "int main(void) { return cudaMalloc(); }")

    def test_static_runtime_with_symbols(self):
        status, checks = self.program(self.compiled(self.RUNTIME))
        self.assertIn("with its symbols", self.states(checks, "runtime")[0][1])
        self.assertEqual(self.states(checks, "runtime")[0][0],
                         "ok" if os.path.exists(LIB + "/libutilities.so") else "wrong")

    def test_static_runtime_stripped(self):
        status, checks = self.program(self.compiled(self.RUNTIME, "-s"))
        self.assertEqual(status, 0)
        self.assertIn("rebuild with -cudart shared", self.states(checks, "runtime")[0][1])

    def test_usage(self):
        for words, what in ((["doctor", "--frob"], "--frob"), (["status", "x"], "'x'"),
                            (["frob"], "'frob'"), (["run", "--frob"], "'--frob'"),
                            (["run", "--software", "--agent", "x", "true"], "not both"),
                            (["run", "--software"], "which program"),
                            (["-role", "king"], "king"), (["-role", "client"], "-ip"),
                            (["-n", "rdma"], "native"), (["-x", "1"], "-x")):
            got = run(*words)
            self.assertEqual(got.returncode, 2, words)
            self.assertIn(what, got.stderr)
            self.assertEqual(got.stderr.count("\n"), 1, got.stderr)


if __name__ == "__main__":
    unittest.main()
