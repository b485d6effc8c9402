# SPDX-License-Identifier: Apache-2.0
"""The ways in that the seeds' documents describe, each with a program that computes."""
import os
import shutil
import socket
import sys

from stack import (BIN, LIB, PROGRAM, Agent, App, Sidecar, children, folder, kill, preloaded,
                   stack, wait_for)

CLIENT, VCUDA = os.path.join(BIN, "vcuda-client"), os.path.join(BIN, "vcuda")


def three_ports():
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [str(s.getsockname()[1]) for s in taken]
    for s in taken:
        s.close()
    return ports


def agent_by(path, command, ports):
    """An agent started the seeds' way, with nothing but their flags: its driver is the system's
    libcuda.so.1.  Here that is the software GPU, in the lib/deps of a tree of its own."""
    for folder_ in ("bin", "lib/deps"):
        os.makedirs(os.path.join(path, folder_))
    for name in ("vcuda", "gpu-agent"):
        shutil.copy(os.path.join(BIN, name), os.path.join(path, "bin", name))
    os.symlink(os.path.join(LIB, "libvcuda-softgpu.so"),
               os.path.join(path, "lib", "deps", "libcuda.so.1"))
    agent = Agent(path, command=[os.path.join(path, "bin", "vcuda"), *command],
                  env={"XDG_CACHE_HOME": path, "HOME": path})
    agent.ports = dict(zip(("send", "recv", "control"), map(int, ports)))
    agent.address = f"127.0.0.1:{ports[1]}"

    def ready():
        agent.check()
        try:
            return agent.http("/readyz").strip() == "ok"
        except OSError:
            return False
    wait_for(ready, 20, "the agent is ready")
    return agent


def computes(where):
    app = App("sum", 3, 64, socket=where)
    app.right()
    assert "3 rounds right" in app.text(), app.text()


def test_positional_client():
    with folder() as path:
        agent = Agent(path)
        send, recv, control = (agent.ports[n] for n in ("send", "recv", "control"))
        where = os.path.join(path, "s")
        # The port that the client sends to is the agent's receive port.
        Sidecar(path, agent, socket=where, command=[CLIENT, "0", "127.0.0.1", "native", str(recv),
                                                    str(send), str(control), "0"])
        computes(where)
        # The seeds' pods have no volume for the socket: its name in the network namespace will do.
        os.unlink(where)
        computes(where)
        agent.stop()


def test_server_with_short_flags():
    with folder() as path:
        ports = three_ports()
        agent = agent_by(path, ["-n", "native", "-s", ports[0], "-r", ports[1], "-p",
                                ports[2], "-a", "0x7f0000000000", "-k", "0x10"], ports)
        sidecar = Sidecar(path, agent)
        computes(sidecar.socket)
        assert agent.log().count("obsolete") == 2, agent.log()
        agent.stop()


def test_roles_server_and_client():
    with folder() as path:
        ports = three_ports()
        agent = agent_by(path, ["-role", "server", "-ip", "127.0.0.1", "-net", "native",
                                "-send_port", ports[0], "-recv_port", ports[1], "-p", ports[2]],
                         ports)
        where = os.path.join(path, "s")
        # A server's send port is the client's receive port.
        Sidecar(path, agent, socket=where,
                command=[VCUDA, "-role", "client", "-ip", "127.0.0.1", "-net", "native",
                         "-send_port", ports[1], "-recv_port", ports[0]])
        computes(where)
        agent.stop()


def test_address_in_the_environment_and_no_sidecar():
    with folder() as path:
        agent = Agent(path)
        env = {"REMOTE_GPU_ADDRESS": agent.address, "XDG_RUNTIME_DIR": path}
        before = set(children(os.getpid(), "vcuda-client"))
        pids = []
        for _ in range(2):
            app = App("sum", 3, 64, env=env)
            app.right()
            assert "3 rounds right" in app.text(), app.text()
            pids.append(set(children(os.getpid(), "vcuda-client")) - before)
        assert len(pids[0]) == 1 and pids[0] == pids[1], f"one sidecar serves both: {pids}"
        assert [n for n in os.listdir(path) if n.endswith(".sock")], os.listdir(path)
        kill(list(pids[0]))
        agent.stop()


def test_two_lists_of_agents_that_begin_alike_have_two_sidecars():
    with folder() as path:
        agent = Agent(path)
        before = set(children(os.getpid(), "vcuda-client"))
        alike = ",".join([agent.address] * 8)
        for more in ("localhost", "127.0.0.1"):
            port = agent.address.rsplit(":", 1)[1]
            App("sum", 3, 64, env={"REMOTE_GPU_ADDRESS": f"{alike},{more}:{port}",
                                   "XDG_RUNTIME_DIR": path}).right()
        sockets = [n for n in os.listdir(path) if n.startswith("vcuda-") and n.endswith(".sock")]
        assert len(sockets) == 2 and sockets[0][:14] == sockets[1][:14], sockets
        started = set(children(os.getpid(), "vcuda-client")) - before
        assert len(started) == 2, started
        kill(list(started))
        agent.stop()


def test_address_in_the_environment_many_at_once():
    """Programs that start together share one sidecar."""
    with folder() as path:
        agent = Agent(path)
        env = {"REMOTE_GPU_ADDRESS": agent.address, "XDG_RUNTIME_DIR": path}
        before = set(children(os.getpid(), "vcuda-client"))
        apps = [App("sum", 3, 64, env=env) for _ in range(6)]
        for app in apps:
            app.right(30)

        def one():
            return len(set(children(os.getpid(), "vcuda-client")) - before) == 1
        wait_for(one, 6, "only one sidecar stays")
        kill(list(set(children(os.getpid(), "vcuda-client")) - before))
        agent.stop()


def test_empty_environment():
    with stack() as s:
        app = App("-i", f"VCUDA_SOCKET={s.sidecar.socket}", f"LD_PRELOAD={preloaded()}", PROGRAM,
                  "sum", 3, 64, program="/usr/bin/env", preload=False)
        app.right()
        assert "3 rounds right" in app.text(), app.text()


def test_vcuda_run_agent_and_software():
    with stack() as s:
        app = App("run", "--agent", s.agent.address, "--", PROGRAM, "sum", 3, 64, program=VCUDA,
                  preload=False)
        app.right()
        assert "3 rounds right" in app.text(), app.text()
        app = App("run", "--", PROGRAM, "sum", 3, 64, program=VCUDA, preload=False,
                  socket=s.sidecar.socket)
        app.right()
        assert "3 rounds right" in app.text(), app.text()
    app = App("run", "--software", "--", PROGRAM, "sum", 3, 64, program=VCUDA, preload=False)
    app.right(30)
    assert "3 rounds right" in app.text(), app.text()


def test_vcuda_run_passes_the_exit_status_on_and_cleans_up():
    for command, status in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                            (["/nowhere/program"], 127)):
        app = App("run", "--software", "--", *command, program=VCUDA, preload=False)
        assert app.wait(30) == status, f"{command}: {app.process.returncode} {app.text()}"


def test_vcuda_run_tells_triton_where_libcuda_is():
    """It links what it compiles with the libcuda.so.1 of that folder."""
    look = ["sh", "-c", "test -e $TRITON_LIBCUDA_PATH/libcuda.so.1 && echo there || echo none"]
    app = App("run", "--software", "--", *look, program=VCUDA, preload=False)
    assert app.wait(30) == 0 and app.text().strip() == "there", app.text()
    app = App("TRITON_LIBCUDA_PATH=/nowhere", VCUDA, "run", "--software", "--", *look,
              program="/usr/bin/env", preload=False)
    assert app.wait(30) == 0 and app.text().strip() == "none", app.text()


def test_vcuda_run_lets_the_driver_be_found_as_a_file():
    """By compilers, by Python's find_library, which asks them or ld (PyKeOps), and by who looks into LD_LIBRARY_PATH."""
    find = ("import ctypes.util, os; print(ctypes.util.find_library('cuda'), ctypes.util.find_library('nvidia-ml'), "
            "os.environ['LD_LIBRARY_PATH'].split(':')[0], os.environ['LIBRARY_PATH'].split(':')[0])")
    app = App("LD_LIBRARY_PATH=/mine", "LIBRARY_PATH=/mine", VCUDA, "run", "--software", "--", sys.executable, "-c", find,
              program="/usr/bin/env", preload=False)
    assert app.wait(30) == 0 and app.text().strip() == "libcuda.so.1 libnvidia-ml.so.1 /mine /mine", app.text()
    with folder() as path:
        text, program = os.path.join(path, "x.c"), os.path.join(path, "x")
        with open(text, "w", encoding="utf-8") as file:
            file.write("int cuInit(unsigned), cuDeviceGetCount(int *), nvmlInit_v2(void), nvmlDeviceGetCount_v2(unsigned *);\n"
                       "int main(void) { int n = 0; unsigned m = 0; return cuInit(0) || cuDeviceGetCount(&n) || n < 1 ||\n"
                       "nvmlInit_v2() || nvmlDeviceGetCount_v2(&m) || m < 1; }\n")
        app = App("run", "--software", "--", "sh", "-c", 'cc "$0" -o "$1" -lcuda -lnvidia-ml && "$1" && readelf -d "$1"', text,
                  program, program=VCUDA, preload=False)
        assert app.wait(30) == 0 and "[libcuda.so.1]" in app.text() and "[libnvidia-ml.so.1]" in app.text(), app.text()


def test_vcuda_run_has_a_ptxas_for_the_software_gpu():
    """XLA finds it in PATH, Triton and Mojo by their variables: what it makes of PTX is a module, to be loaded without its size."""
    make = ["sh", "-c", 'ptxas --version | grep -q "release 12.9" && ptxas -arch sm_80 -v "$0" -o "$1" && '
            'test "$TRITON_PTXAS_PATH" = "$(command -v ptxas)" && '
            'test "$MODULAR_NVPTX_COMPILER_PATH" = "$TRITON_PTXAS_PATH" && exec "$2" "$3" "$1"']
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "module.py")
    with folder() as path:
        text, module = os.path.join(path, "x.ptx"), os.path.join(path, "x.cubin")
        with open(text, "w", encoding="utf-8") as file:
            file.write(".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry twice(.param .u64 at) {\n.reg .b64 %a; .reg .b32 %v;\n"
                       "ld.param.u64 %a, [at]; ld.global.u32 %v, [%a]; add.u32 %v, %v, %v; st.global.u32 [%a], %v; ret;\n}\n")
        app = App("run", "--software", "--", *make, text, module, sys.executable, program, program=VCUDA, preload=False)
        assert app.wait(30) == 0 and app.text().strip() == "42", app.text()
        for arguments, say in (([text], "no -o"), (["-o", module], "no input"), ([__file__, "-o", module], "is no PTX"),
                               ([text, text, "-o", module], "one file at a time"), ([path + "/none", "-o", module], "none")):
            app = App("run", "--software", "--", "ptxas", *arguments, program=VCUDA, preload=False)
            assert app.wait(30) and say in app.text(), app.text()


def test_vcuda_run_killed_leaves_nothing():
    app = App("run", "--software", "--", PROGRAM, "wait", program=VCUDA, preload=False)
    app.line("^launched", 30)
    kill(app.pid)
    # The runner fails the test if a process is left 3 s later.
