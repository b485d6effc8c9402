# SPDX-License-Identifier: Apache-2.0
"""What people get wrong: each is one line that names it and says what to do."""
import os
import socket

import peer
from stack import (BIN, BUILD, NO_DEVICE, NOT_PERMITTED, NOT_READY, Agent, App, Sidecar, folder,
                   one_line, stack, wait_for)

AGENT, CLIENT, VCUDA = (os.path.join(BIN, name) for name in ("gpu-agent", "vcuda-client", "vcuda"))


def config_is_refused(program, text, *needles):
    with folder() as path:
        name = os.path.join(path, "bad.yaml")
        with open(name, "w") as file:
            file.write(text)
        one_line([program, "--config", name], os.path.basename(program) + ": ", name, *needles)


def test_agent_configuration_bad_value():
    config_is_refused(AGENT, "driver: software\nports:\n  recv: nonsense\n",
                      ":3: ", "ports.recv", "nonsense", "0-65535")


def test_agent_configuration_unknown_key():
    config_is_refused(AGENT, "driver: software\nspeed: 3\n", ":2: ", "unknown key 'speed'",
                      "docs/AGENT.md")


def test_agent_configuration_not_yaml():
    config_is_refused(AGENT, "driver: [\n", ":2: ")


def test_agent_configuration_missing():
    one_line([AGENT, "--config", "/nowhere/agent.yaml"], "/nowhere/agent.yaml", "No such file")


def test_sidecar_configuration_bad_value():
    config_is_refused(CLIENT, "agent: localhost\nring: 3Mi\n", ":2: ", "ring", "3Mi",
                      "power of two")


def test_sidecar_configuration_unknown_key():
    config_is_refused(CLIENT, "agent: localhost\nspeed: 3\n", ":2: ", "unknown key 'speed'",
                      "known: agent")


def test_sidecar_configuration_not_yaml():
    config_is_refused(CLIENT, "agent: [\n", ":2: ")


def test_sidecar_configuration_missing():
    one_line([CLIENT, "--config", "/nowhere/c.yaml"], "/nowhere/c.yaml", "No such file")


def test_unknown_flag():
    for command in ([AGENT, "--speed"], [AGENT, "--speed=3"], [AGENT, "-x"], [CLIENT, "--speed"],
                    [CLIENT, "--speed", "3"], [VCUDA, "--speed"],
                    [VCUDA, "run", "--speed", "--", "true"]):
        one_line(command, "unknown flag '" + next(w for w in command[1:] if w[0] == "-"), "help",
                 status=2)


def test_unknown_command():
    one_line([CLIENT, "fly"], "unknown command 'fly'", "--help", status=2)
    one_line([VCUDA, "fly"], "unknown command 'fly'", "--help", status=2)


def test_agent_unknown_argument():
    one_line([AGENT, "fly"], "'fly'", "--help", status=2)


def test_flag_without_a_value():
    one_line([AGENT, "--ports"], "--ports wants S,R,C", status=2)
    one_line([CLIENT, "--agent"], "--agent needs a value", status=2)
    for flag in "--agent", "--token-file":
        one_line([VCUDA, "run", flag], flag + " needs a value", status=2)
        one_line([VCUDA, "run", flag, "", "--", "true"], flag + " needs a value", status=2)
    one_line([VCUDA, "-role", "server", "-send_port"], "-send_port needs a value", status=2)


def test_flag_with_a_bad_value():
    one_line([AGENT, "--ports", "0,0"], "--ports", "0,0", "three ports", status=2)
    one_line([AGENT, "--driver", "fast"], "--driver", "fast", "nvidia, software or", status=2)
    one_line([CLIENT, "--agent", "host:port"], "--agent", "host:port", "HOST:PORT", status=2)
    one_line([CLIENT, "--agent", "h", "--ipc", "carrier-pigeon"], "--ipc", "carrier-pigeon",
             "host nor pod", status=2)
    one_line([CLIENT, "0", "host", "avian", "1", "2", "3", "0"], "avian", "native", status=2)
    one_line([CLIENT, "0", "host", "native", "1", "2"], "vcuda-client 0 HOST native|light SEND", status=2)
    one_line([VCUDA, "run", "--agent", "host:port", "--", "true"], "host:port", "HOST:PORT",
             status=2)
    one_line([VCUDA, "-role", "cook"], "cook", "server or client", status=2)
    one_line([VCUDA, "-role", "client"], "-ip HOST", status=2)
    one_line([VCUDA, "run"], "which program", status=2)


def test_addresses_and_paths_that_cannot_be():
    for key, value, wants in (("http.address", "a b", "one address to listen on"),
                              ("http.address", "a;b", "is not HOST, HOST:PORT"),
                              ("store.socket", "run/tensors.sock", "an absolute path"),
                              ("peers", "a;b", "a list of names"),
                              ("worker_cpus", "", "all or a list")):
        one_line([AGENT, "--set", f"{key}={value}", "--check-config"], key, value, wants)


def test_busy_port():
    for which in range(3):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            ports = ",".join(str(port if i == which else 0) for i in range(3))
            one_line([AGENT, "--driver", "software", "--insecure", "--address", "127.0.0.1",
                      "--ports", ports],
                     f"port {port}", "choose another port", status=1)


def test_sidecar_socket_taken():
    with stack() as s:
        one_line([CLIENT, "--agent", s.agent.address, "--socket", s.sidecar.socket],
                 s.sidecar.socket, "another sidecar", "--socket", status=1)


def test_sidecar_socket_where_none_can_be():
    one_line([CLIENT, "--agent", "127.0.0.1", "--socket", "/proc/none/s"], "/proc/none", status=1)


def missing_driver(driver, *needles):
    """The agent stays (a driver may come later) and says it in the log, once, and to who asks."""
    with folder() as path:
        agent = Agent(path, driver=driver, ready=False)
        log = wait_for(lambda: "agent.not_ready" in agent.log() and agent.log(), 10, "it says why")
        assert log.count("event=worker.failed") == 1, log
        wait_for(agent.read_ports, 5, "the ready file has the ports")
        line = one_line([CLIENT, "probe", "--agent", agent.address], *needles, status=1)
        for needle in needles:
            assert needle in log, f"'{needle}' is not in: {log}"
        assert "cannot open" in line, line
        agent.stop()


def test_missing_driver():
    missing_driver("nvidia", "libcuda.so.1", "install the NVIDIA driver or set driver: software")


def test_missing_driver_named_by_its_path():
    missing_driver("/nowhere/libcuda.so.1", "/nowhere/libcuda.so.1", "nvidia or software")


def test_driver_of_a_test_that_is_not_built():
    """The test that needs it says so at once, and what to build."""
    for word in ("driver", "program"):
        try:
            with folder() as path:
                if word == "driver":
                    Agent(path, driver=os.path.join(BUILD, "stack", "libnone-driver.so"))
                App(program=os.path.join(BUILD, "stack", "none"))
        except AssertionError as said:
            assert f"{'libnone-driver.so' if word == 'driver' else 'none'} is not built: make all build-tests" in str(said), said
        else:
            raise AssertionError("it runs without what it needs")


def raw_hello(port, version=peer.SESSION_VERSION, magic=peer.SESSION_MAGIC, token=b""):
    """(status, text) of the real agent's answer to a hand-made hello; None: it hung up."""
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        s.sendall(peer.HELLO.pack(magic, version, 3, 0, bytes(16), bytes(16), 1, 0, b"test",
                                  b"test", b"", token, 0, 0, 0))
        try:
            welcome = peer.WELCOME.unpack(peer.read_exact(s, peer.WELCOME.size))
        except (EOFError, ConnectionResetError):
            return None
    return welcome[2], welcome[11].rstrip(b"\0").decode()


def test_agent_told_another_version():
    with stack() as s:
        assert raw_hello(s.agent.ports["recv"])[0] == 0
        status, text = raw_hello(s.agent.ports["recv"], version=99)
        assert status == 803 and "99" in text and "same release" in text, (status, text)
        assert raw_hello(s.agent.ports["recv"], magic=0x0A0D2E312F505454) is None
        s.app("sum", 1, 64).right()


def another_version(fields, _hello):
    fields["version"], fields["status"] = 99, 803
    fields["text"] = b"this agent speaks version 99; install the same release"


def grants_another_version(fields, _hello):
    fields["version"] = 99


def test_sidecar_told_another_version():
    agent = peer.Agent(another_version)
    liar = peer.Agent(grants_another_version)
    try:
        for each in (agent, liar):
            one_line([CLIENT, "probe", "--agent", f"127.0.0.1:{each.port}"], f":{each.port}",
                     "version 99", "same release", status=1)
        with folder() as path:
            sidecar = Sidecar(path, f"127.0.0.1:{agent.port}")
            app = App("count", socket=sidecar.socket)
            app.line("version 99.*same release")
            app.line("error 803 devices 0")
            app.right()
    finally:
        agent.close()
        liar.close()


def test_what_answers_is_not_an_agent():
    other = peer.Agent(lambda fields, _: fields.update(raw=b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20))
    try:
        one_line([CLIENT, "probe", "--agent", f"127.0.0.1:{other.port}"], f":{other.port}",
                 "not a", status=1)
    finally:
        other.close()


def test_wrong_token():
    with folder() as path:
        name = os.path.join(path, "token")
        with open(name, "w") as file:
            file.write("right\n")
        with stack(agent=("--token-file", name), sidecar=("--token-file", name)) as s:
            s.app("sum", 1, 64).right()
            for token in ("wrong", "righ", "rightt"):
                line = one_line([CLIENT, "probe", "--agent", s.agent.address, "--token", token],
                                s.agent.address, "token", status=3)
                assert "right" not in line.replace("rights", ""), line
            one_line([CLIENT, "probe", "--agent", s.agent.address], "token", status=3)
            assert raw_hello(s.agent.ports["recv"], token=b"\xff" * 256)[0] == NOT_PERMITTED
            with folder() as other:
                sidecar = Sidecar(other, s.agent, "--token", "wrong")
                app = App("count", socket=sidecar.socket)
                app.line(s.agent.address.replace(".", r"\.") + ".*token")
                app.line(f"error {NOT_PERMITTED} devices 0")
                app.right()


def test_no_sidecar():
    with folder() as path:
        where = os.path.join(path, "none")
        app = App("count", socket=where, env={"VCUDA_DEBUG": "1"})
        app.line(f"no sidecar at {where}.*REMOTE_GPU_ADDRESS")
        app.line(f"error {NO_DEVICE} devices 0")
        app.right()
        silent = App("count", socket=where)
        silent.right()
        assert silent.text() == f"error {NO_DEVICE} devices 0", silent.text()
        one_line([CLIENT, "status", "--socket", where], where, "vcuda-client run", status=1)
        one_line([CLIENT, "drain", "--socket", where], where, "vcuda-client run", status=1)
        one_line([VCUDA, "status"], where, "vcuda-client run", status=1, env={"VCUDA_SOCKET": where})
        one_line([VCUDA, "run", "--", "true"], where, "--software", "--agent HOST", status=1,
                 env={"VCUDA_SOCKET": where})


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def test_no_agent():
    port = free_port()
    one_line([CLIENT, "probe", "--agent", f"127.0.0.1:{port}"], f"127.0.0.1:{port}", "refused",
             "gpu-agent", status=1)
    one_line([VCUDA, "run", "--agent", f"127.0.0.1:{port}", "--", "true"], f"127.0.0.1:{port}",
             "refused", "gpu-agent", status=1)
    with folder() as path:
        sidecar = Sidecar(path, f"127.0.0.1:{port}")
        app = App("count", socket=sidecar.socket)
        # Without being asked for it, and once.
        app.line(f"vcuda: no GPU .error {NOT_READY}.: agent 127.0.0.1:{port}.*refused")
        app.line(f"error {NOT_READY} devices 0")
        app.right()
        assert len(app.lines) == 2, app.text()


def test_agent_that_never_answers():
    """The name is right, the port is open, and nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        one_line([CLIENT, "probe", "--agent", f"127.0.0.1:{port}"], f"127.0.0.1:{port}", status=1)
        with folder() as path:
            sidecar = Sidecar(path, f"127.0.0.1:{port}", "--attach-timeout", "1")
            app = App("count", socket=sidecar.socket)
            app.line(f"127.0.0.1:{port}", 10)
            app.line(f"error {NOT_READY} devices 0")
            app.right()


def test_static_cudart():
    with stack() as s:
        app = s.app(program=os.path.join(BUILD, "static", "unknown", "13", "vector-add"))
        assert app.wait() != 0
        told = [line for _, line in app.lines if "rebuild with -cudart shared" in line]
        assert len(told) == 1 and "stripped" in told[0], app.text()
