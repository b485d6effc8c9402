# SPDX-License-Identifier: Apache-2.0
"""Several agents in one process (`a+b`): the order of their GPUs, each with memory, streams, events and copies of its
own, what goes between them, and one of them that ends while the others go on (docs/SEVERAL-GPUS.md)."""
import contextlib
import os
import re
import socket
import subprocess
import sys

from stack import ANYWHERE, BIN, BUILD, LOST, ROOT, Agent, App, Sidecar, environment, folder, kill, one_line, wait_for
from test_direct import Tap

SPREAD = os.path.join(BUILD, "stack", "spread")


@contextlib.contextmanager
def agents(*gpus, flags=(), more=()):
    """An agent for each number, with so many GPUs, and a sidecar that has them all."""
    with folder() as path:
        made = []
        for number, count in enumerate(gpus):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            made.append(Agent(place, *more, env={"VCUDA_SOFTGPU_DEVICES": str(count), "VCUDA_SOFTGPU_IDENTITY": place}))
        sidecar = Sidecar(path, "+".join(agent.address for agent in made), *flags)
        try:
            yield made, sidecar
        except AssertionError as error:
            tails = "\n".join(one.log()[-900:] for one in (sidecar, *made))
            raise AssertionError(f"{error}\n{tails}").with_traceback(error.__traceback__) from None


def program(word, sidecar, path=SPREAD, **env):
    return App(word, program=path, socket=sidecar.socket, env=env)


def right(app, text, seconds=60):
    app.close_stdin()
    app.right(seconds)
    assert text in app.text(), app.text()


def test_each_gpu_works():
    with agents(1, 1) as (made, sidecar):
        right(program("all", sidecar), "right on 2")
        for agent in made:  # a session at each, and none is left
            wait_for(lambda agent=agent: not agent.sessions(), 5, "the sessions are gone")


def test_three_agents_of_several_gpus():
    with agents(2, 1, 3) as (_, sidecar):
        right(program("all", sidecar), "right on 6")
        right(program("between", sidecar), "right between 0 and 5")


def test_between_two():
    with agents(1, 1) as (_, sidecar):
        right(program("between", sidecar), "right between 0 and 1")


def test_every_switch():
    with agents(1, 2) as (_, sidecar):
        for word in ("no_post", "no_cache", "no_learn", "no_batch", "no_slab", "no_push", "no_zerocopy",
                     "no_module_cache", "no_userfaultfd"):
            right(program("between", sidecar, VCUDA_PERF=word), "right between 0 and 2")
        right(program("all", sidecar, VCUDA_STRICT="1"), "right on 3")


# Whatever several devices do. The others of tests/programs need memory that kernels of several agents do not reach.
SEVERAL = ("peers", "peer-copies", "devices", "devices-order", "streams", "contexts", "symbols", "virtual-memory", "device-query")
SWITCHES = ("no_post", "no_cache", "no_learn", "no_batch", "no_slab", "no_push", "no_zerocopy", "no_module_cache",
            "no_userfaultfd", "no_direct", "no_zstd", "no_upload_cache")
WAYS = {"direct": ("--peers", ANYWHERE), "relayed": ()}


def several(sidecar, names=SEVERAL[:5], **env):
    for name in names:
        app = App(program=os.path.join(BUILD, "programs", "13", name), socket=sidecar.socket, env=env)
        app.close_stdin()
        app.right(60)


def switched(way, first, last):
    with agents(1, 1, more=WAYS[way]) as (made, sidecar):
        several(sidecar, SEVERAL)
        for word in SWITCHES[first:last]:
            several(sidecar, VCUDA_PERF=word)
        if last is None:
            several(sidecar, VCUDA_PERF=",".join(SWITCHES))
            several(sidecar, VCUDA_STRICT="1")
        joined = [agent.log().count("event=direct.open") for agent in made]
        assert all(joined), joined
        assert ("relay.open" in sidecar.log()) == (way == "relayed"), sidecar.log()[-900:]


def test_every_switch_is_in_the_shims_list():
    """SWITCHES are the words that VCUDA_PERF takes."""
    with open(os.path.join(ROOT, "shim", "driver", "device", "init.c")) as file:
        assert sorted(re.findall(r'{"(no_\w+)", PERF_', file.read())) == sorted(SWITCHES)


def test_programs_of_several_devices_directly():
    switched("direct", 0, 6)


def test_programs_of_several_devices_directly_2():
    switched("direct", 6, None)


def test_programs_of_several_devices_relayed():
    switched("relayed", 0, 6)


def test_programs_of_several_devices_relayed_2():
    switched("relayed", 6, None)


def test_records_of_a_profile_name_devices_as_the_program_does():
    """Each agent counts its GPUs, contexts and streams from the same numbers; the program sees them once, in its order."""
    with agents(1, 2) as (_, sidecar):
        several(sidecar, ["profiler-devices"])
        several(sidecar, ["profiler-devices"], CUDA_VISIBLE_DEVICES="2,0")


def test_plans_of_cufft_on_two_agents():
    """cuFFT's plans on several GPUs: parts, exchanges and strings of two agents, joined directly or by the sidecar."""
    for more in WAYS.values():
        with agents(1, 1, more=more) as (_, sidecar):
            for name in ("several-gpus", "several-calls"):
                right(App(program=os.path.join(BUILD, "cufft", "13", name), socket=sidecar.socket), "ok")


def test_order_of_three_devices():
    """A copy is in order with the devices of both sides, of which one may be another of the current one's agent."""
    for more in WAYS.values():
        with agents(2, 1, more=more) as (_, sidecar):
            several(sidecar, ("devices-order",))


def test_places_are_names():
    """GPUs of two agents have two PCI places, though each is the first of its machine; a UUID is as it was."""
    with agents(2, 2) as (_, sidecar):
        got = subprocess.run([os.path.join(BIN, "vcuda"), "smi"], capture_output=True, text=True, timeout=60,
                             env=environment({"VCUDA_SOCKET": sidecar.socket}))
        places = re.findall(r"[0-9A-F]{8}:[0-9A-F]{2}:00.0", got.stdout)
        assert places == ["00000000:01:00.0", "00000000:02:00.0", "00000100:01:00.0", "00000100:02:00.0"], got
        order = subprocess.run([os.path.join(BIN, "vcuda"), "doctor", "--json"], capture_output=True, text=True, timeout=60,
                               env=environment({"VCUDA_SOCKET": sidecar.socket, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}))
        assert "4 GPUs" in order.stdout, order


def test_what_a_further_agent_costs():
    """At most 13 MiB of shared memory, which the sidecar reserves."""
    def shared(count):
        with agents(*[1] * count) as (_, sidecar):
            app = program("go-on", sidecar)
            app.line(f"^running on {count}", 30)
            with open(f"/proc/{app.pid}/smaps") as file:
                sizes = re.findall(r"memfd:vcuda.*\n(?:.*\n)*?Size: +(\d+) kB", file.read())
            right(app, "right")
        return sum(map(int, sizes)) << 10
    one, two, four = shared(1), shared(2), shared(4)
    assert one and two > one, (one, two)
    assert two - one <= 13 << 20 and four - two <= 26 << 20, (one, two, four)


def test_the_order_is_that_of_the_list():
    with agents(1, 3) as (made, sidecar):
        app = program("go-on", sidecar, CUDA_VISIBLE_DEVICES="3,0")
        app.line("^running on 2", 30)
        assert [len(agent.sessions()) for agent in made] == [1, 1]
        used = [[memory["leased_bytes"] for memory in agent.sessions()[0]["memory"]] for agent in made]
        assert used[0][0] and [bool(n) for n in used[1]][2], used
        right(app, "device 1 right")


def test_visibility_and_a_lost_device_with_every_switch():
    """Whatever is switched off, and relayed: the devices that are named are those that are used, and when the first of
    them is lost the other one's sums are right."""
    words = ("", *SWITCHES, ",".join(SWITCHES))
    for more in WAYS.values():
        with agents(1, 2, more=more) as (made, sidecar):
            got = subprocess.run([os.path.join(BIN, "vcuda"), "smi", "-L"], capture_output=True, text=True, timeout=60,
                                 env=environment({"VCUDA_SOCKET": sidecar.socket}))
            uuids = re.findall(r"UUID: (GPU-[0-9a-f-]{36})\)", got.stdout)
            assert len(set(uuids)) == 3, got
            for number, word in enumerate(words):
                visible = (f"{uuids[2]},{uuids[0]}", "2,0", f"{uuids[2].upper()},{uuids[0]},GPU-x")[number % 3]
                app = program("go-on", sidecar, CUDA_VISIBLE_DEVICES=visible, VCUDA_PERF=word)
                app.line("^running on 2", 30)
                mine = [next(s for s in agent.sessions() if s["pid"] == app.pid) for agent in made]
                used = [bool(memory["leased_bytes"]) for session in mine for memory in session["memory"]]
                assert used[0] and used[-1], (word, mine)
                kill(mine[1]["worker_pid"])
                app.line(f"^device 0 lost: error {LOST}", 30)
                app.close_stdin()
                assert app.wait(30) == 0 and "device 1 right" in app.text(), (word, app.text())


def test_one_that_is_killed_leaves_the_others():
    with agents(1, 2) as (made, sidecar):
        app = program("go-on", sidecar)
        app.line("^running on 3", 30)
        kill(made[1].everyone())
        lost = {app.line(rf"^device (\d) lost: error {LOST}", 40)[1] for _ in range(2)}
        assert lost == {"1", "2"}, app.text()
        app.close_stdin()
        assert app.wait(30) == 0, app.text()
        for line in ("device 0 right", "device 1 lost", "device 2 lost"):
            assert line in app.text(), app.text()


def test_a_sidecar_that_is_followed_by_another():
    """Each session goes on with the next sidecar."""
    with agents(1, 1) as (made, sidecar):
        app = program("go-on", sidecar)
        app.line("^running on 2", 30)
        kill(sidecar.pid)
        sidecar.process.wait(10)
        Sidecar(os.path.join(sidecar.folder, "next"), "+".join(agent.address for agent in made),
                socket=sidecar.socket)
        for agent in made:
            wait_for(lambda agent=agent: 'resumes_total{result="resumed"} 1' in agent.http("/metrics"), 20,
                     "the session goes on")
        app.close_stdin()
        assert app.wait(30) == 0 and "lost" not in app.text(), app.text()


def test_a_child_and_another_process():
    with agents(1, 1) as (_, sidecar):
        apps = [program("all", sidecar) for _ in range(3)]
        for app in apps:
            right(app, "right on 2")


def test_by_the_command():
    with agents(1, 1) as (made, _):
        got = subprocess.run([os.path.join(BIN, "vcuda"), "run", "--agent", made[0].address, "--agent", made[1].address,
                              "--", SPREAD, "all"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=60, env=environment())
        assert got.returncode == 0 and "right on 2" in got.stdout, got
        got = subprocess.run([os.path.join(BIN, "vcuda-client"), "probe", "--agent",
                              f"{made[0].address}+{made[1].address}"], capture_output=True, text=True, timeout=20,
                             env=environment())
        assert got.returncode == 0 and got.stdout.count(" answers: ") == 2, got


def test_all_are_in_the_topology():
    with agents(8, 8, 1) as (_, sidecar):
        got = subprocess.run([os.path.join(BIN, "vcuda"), "smi", "topo"], capture_output=True, text=True, timeout=60,
                             env=environment({"VCUDA_SOCKET": sidecar.socket}))
        lines = got.stdout.splitlines()
        assert lines[0].split()[-1] == "GPU16" and lines[17].split()[::17] == ["GPU16", "X"], got


def test_one_sentence_each():
    client = os.path.join(BIN, "vcuda-client")
    for agent, needle in (("a+a", "is named twice"), ("a+", "names no agent behind a +"), ("+a", "no agent before"),
                          ("a++b", "names no agent"), ("a,b+a,b", "is named twice"),
                          ("+".join(f"h{i}" for i in range(65)), "64 are the most")):
        one_line([client, "run", "--agent", agent, "--socket", "/tmp/vcuda-none/s"], needle, status=2)


def refused(sidecar, needle, error):
    app = App("count", socket=sidecar.socket)
    app.close_stdin()
    app.wait(30)
    assert f"error {error}" in app.text() and needle in app.text(), app.text()


def test_two_names_of_one_agent():
    with folder() as path:
        agent = Agent(path)
        port = agent.ports["recv"]
        sidecar = Sidecar(path, f"127.0.0.1:{port}+native://127.0.0.1:{port}")
        refused(sidecar, "are one and the same", 800)


ASKS = """import ctypes
print("cuInit gave", ctypes.CDLL("libcuda.so.1").cuInit(0), flush=True)
input()
"""


def test_sessions_that_are_refused_are_taken_back():
    """While the program goes on no agent has one, and nobody in it follows a sidecar that hangs up."""
    with folder() as path:
        agent = Agent(path)
        port = agent.ports["recv"]
        sidecar = Sidecar(path, f"127.0.0.1:{port}+native://127.0.0.1:{port}")
        app = App("-c", ASKS, program=sys.executable, socket=sidecar.socket)
        app.line("cuInit gave 800", 30)
        wait_for(lambda: not agent.sessions(), 10, "the sessions are gone")
        sidecar.stop()
        wait_for(lambda: len(os.listdir(f"/proc/{app.pid}/task")) == 1, 10, "its threads are gone")
        assert "sidecar" not in app.text().split("cuInit gave")[1], app.text()
        assert app.process.poll() is None, app.text()
        app.close_stdin()
        app.wait(30)


def test_sixty_four_gpus_and_one_more():
    with agents(*([8] * 8 + [1])) as (made, sidecar):
        refused(sidecar, "there are 65 GPUs; a process has 64 at the most", 803)
        sidecar.stop()
        eight = Sidecar(os.path.join(sidecar.folder, "eight"), "+".join(agent.address for agent in made[:8]))
        right(program("all", eight), "right on 64", 120)


class Older(Tap):
    """Before an agent, whose release it makes an older one."""

    def __init__(self, agent):
        super().__init__(agent, lambda hello: True)
        with open(os.path.join(ROOT, "common", "version.h")) as file:
            self.release = re.search(r'VCUDA_VERSION "([^"]+)"', file.read())[1]
        self.changed = 0

    def carry(self, source, target):
        here, older = (text.encode() + b"\0" for text in (self.release, "0" * len(self.release)))
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.changed += data.count(here)
                target.sendall(data.replace(here, older))
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def test_agents_of_different_releases():
    with folder() as path:
        made = []
        for number in range(2):
            os.makedirs(os.path.join(path, str(number)))
            made.append(Agent(os.path.join(path, str(number))))
        older = Older(made[1])
        try:
            sidecar = Sidecar(path, f"{made[0].address}+{older.address}")
            app = App("count", socket=sidecar.socket)
            app.close_stdin()
            app.wait(30)
            said = [line for _, line in app.lines if line.startswith("vcuda: ")]
            assert older.changed and "error 803" in app.text(), app.text()
            assert len(said) == 1 and f"agent {older.address} is of release {'0' * len(older.release)}, {made[0].address} of " \
                f"{older.release}: a process uses several of one release" in said[0], app.text()
            for agent in made:
                wait_for(lambda agent=agent: not agent.sessions(), 10, "the sessions are gone")
            # Either of them alone serves.
            App("sum", 1, 64, socket=Sidecar(os.path.join(path, "alone"), older.address).socket).right(60)
        finally:
            older.close()


def test_an_agent_that_is_not_there():
    with folder() as path:
        agent = Agent(path)
        sidecar = Sidecar(path, f"{agent.address}+127.0.0.1:1", "--attach-timeout", "2")
        refused(sidecar, "127.0.0.1:1", 802)
        # Nothing of the first one's session is left.
        wait_for(lambda: not agent.sessions(), 10, "the session is gone")
