# SPDX-License-Identifier: Apache-2.0
"""CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER: what is computed with is what was named, and NVML shows
everything (tests/unit/shim/shim_visible.c has what NVIDIA's driver makes of each value)."""
import contextlib
import os
import re
import subprocess
import sys

from stack import BIN, BUILD, MIB, Agent, App, Sidecar, environment, folder
from test_agents import SWITCHES

INVALID_DEVICE = 101
NO_DEVICE = 100


@contextlib.contextmanager
def with_gpus(count):
    with folder() as path:
        agent = Agent(path, env={"VCUDA_SOFTGPU_DEVICES": str(count)})
        yield agent, Sidecar(path, agent)


def gpus(socket, **more):
    """What NVML names: its UUIDs, in order."""
    got = subprocess.run([os.path.join(BIN, "vcuda"), "smi", "-L"], capture_output=True, text=True,
                         timeout=20, env=environment({"VCUDA_SOCKET": socket, **more}))
    return re.findall(r"UUID: (GPU-[0-9a-f-]{36})\)", got.stdout)


def test_the_gpus_named_are_the_gpus_used():
    with with_gpus(3) as (agent, sidecar):
        uuids = gpus(sidecar.socket)
        assert len(set(uuids)) == 3, uuids
        everything = App("limit", 256 * MIB, socket=sidecar.socket)
        everything.line("^sees 3 GPUs", 20)
        place = [everything.line(rf"^GPU {i} works: (\S+)")[1] for i in range(3)]
        everything.close_stdin()
        everything.wait()
        for value, want in (("1", [1]), ("2,0", [2, 0]), (uuids[2], [2]), ("2,7,1", [2]),
                            (f"{uuids[1]},{uuids[0].upper()}", [1, 0])):
            app = App("limit", 256 * MIB, socket=sidecar.socket,
                      env={"CUDA_VISIBLE_DEVICES": value, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
            app.line(f"^sees {len(want)} GPUs", 20)
            got = [app.line(rf"^GPU {i} works: (\S+)")[1] for i in range(len(want))]
            assert got == [place[i] for i in want], (value, got)
            app.line("^error 2 after", 20)  # all of its first GPU, and of no other
            session, = [s for s in agent.sessions() if s["pid"] == app.pid]
            used = [m["leased_bytes"] >= 512 * MIB for m in session["memory"]]
            assert used == [i == want[0] for i in range(3)], (value, session["memory"])
            app.close_stdin()
            app.wait()


NAMES = """import ctypes, uuid
cuda, count, text = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(16)
assert not cuda.cuInit(0) and not cuda.cuDeviceGetCount(ctypes.byref(count))
for device in range(count.value):
    assert not cuda.cuDeviceGetUuid_v2(text, device)
    print(f"GPU-{uuid.UUID(bytes=text.raw)}", flush=True)
"""


def test_the_gpus_named_are_the_gpus_seen_with_every_switch():
    with with_gpus(3) as (_, sidecar):
        uuids = gpus(sidecar.socket)
        for word in (*SWITCHES, ",".join(SWITCHES)):
            for value in f"{uuids[2]},{uuids[0]}", "2,0":
                app = App("-c", NAMES, program=sys.executable, socket=sidecar.socket,
                          env={"CUDA_VISIBLE_DEVICES": value, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "VCUDA_PERF": word})
                app.right()
                assert app.text().split() == [uuids[2], uuids[0]], (word, value, app.text())


def test_none_and_nonsense():
    with with_gpus(3) as (agent, sidecar):
        for value, order, error in (("", None, NO_DEVICE), ("-1", None, NO_DEVICE),
                                    ("7", None, NO_DEVICE), ("GPU-", None, NO_DEVICE),
                                    ("0,0", None, INVALID_DEVICE),
                                    ("0", "fastest", INVALID_DEVICE)):
            app = App("count", socket=sidecar.socket,
                      env={"CUDA_VISIBLE_DEVICES": value, "CUDA_DEVICE_ORDER": order})
            app.right()
            assert app.text() == f"error {error} devices 0", (value, app.text())
            assert len(gpus(sidecar.socket, CUDA_VISIBLE_DEVICES=value)) == 3


def places(app, count):
    """Where the GPUs lie that the program sees."""
    app.line(f"^sees {count} GPUs", 20)
    return [app.line(rf"^GPU {i} works: (\S+)")[1] for i in range(count)]


def test_a_launcher_gives_each_process_its_own():
    """As Ray (a number each), vLLM (UUIDs, several for each) and Slurm (prefixes) do, all at the same time. The
    programs ask for more memory than there is, so each leaves the others theirs."""
    with with_gpus(4) as (agent, sidecar):
        uuids = gpus(sidecar.socket)
        everything = App("limit", 1 << 40, socket=sidecar.socket)
        place = places(everything, 4)
        everything.close_stdin()
        everything.wait()
        prefix = [next(u[:n] for n in range(5, 41) if sum(v.startswith(u[:n]) for v in uuids) == 1) for u in uuids]
        for hand_out in ([("0", [0]), ("1", [1]), ("2", [2]), ("3", [3])],
                         [(f"{uuids[0]},{uuids[1]}", [0, 1]), (f"{uuids[3]},{uuids[2]}", [3, 2])],
                         [(prefix[i], [i]) for i in (3, 1, 2, 0)],
                         [("0,1", [0, 1]), ("2,3", [2, 3]), (None, [0, 1, 2, 3])]):
            apps = [(App("limit", 1 << 40, socket=sidecar.socket,
                         env={"CUDA_VISIBLE_DEVICES": value, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}), want)
                    for value, want in hand_out]
            for app, want in apps:
                assert places(app, len(want)) == [place[i] for i in want], (want, app.text())
            assert len({s["worker_pid"] for s in agent.sessions()}) == len(apps)
            for app, want in apps:
                app.close_stdin()
                app.wait()
            assert gpus(sidecar.socket, CUDA_VISIBLE_DEVICES=hand_out[0][0]) == uuids


def test_programs_with_two_gpus_changed_round():
    with folder() as path:
        agent = Agent(path, env={"VCUDA_SOFTGPU_DEVICES": "2"})
        sidecar = Sidecar(path, agent)
        for name in ("peers", "contexts", "pinned-memory", "virtual-memory", "peer-access", "peer-fault", "peer-copies",
                     "devices", "devices-order", "devices-work", "sharing-peers"):
            App(socket=sidecar.socket, program=os.path.join(BUILD, "programs", "13", name),
                env={"CUDA_VISIBLE_DEVICES": "1,0"}).right(60)


def seen(path, name, *flags, **more):
    """UUIDs of a new agent of 4 software GPUs, and their PCI places."""
    place = os.path.join(path, name)
    os.makedirs(place)
    agent = Agent(place, *flags, env={"VCUDA_SOFTGPU_DEVICES": "4", "VCUDA_SOFTGPU_IDENTITY": path, **more})
    sidecar = Sidecar(place, agent)
    places = subprocess.run([os.path.join(BIN, "vcuda"), "smi"], capture_output=True, text=True, timeout=20,
                            env=environment({"VCUDA_SOCKET": sidecar.socket})).stdout
    return gpus(sidecar.socket), re.findall(r"00000000:(0\d):00.0", places), sidecar


def test_an_agents_gpus():
    """`gpus:` of an agent's configuration, and what its own environment says."""
    with folder() as path:
        uuids, places, _ = seen(path, "all")
        assert len(set(uuids)) == 4 and places == ["01", "02", "03", "04"], (uuids, places)
        config = os.path.join(path, "agent.yaml")
        with open(config, "w") as out:
            out.write("gpus: [2, 0]\n")
        got, places, sidecar = seen(path, "two", "--config", config)
        assert got == [uuids[2], uuids[0]] and places == ["03", "01"], (uuids, got, places)
        # The program's choice is among those.
        app = App("limit", 256 * MIB, socket=sidecar.socket,
                  env={"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"})
        app.line("^sees 1 GPUs", 20)
        app.close_stdin()
        app.wait()
        # The beginning of several names is none's.
        got, _, _ = seen(path, "named", CUDA_VISIBLE_DEVICES=f"{uuids[3]},{uuids[1].upper()},{uuids[0][:-3]},{uuids[2]}")
        assert got == [uuids[3], uuids[1]], (uuids, got)
        got, _, _ = seen(path, "stops", CUDA_VISIBLE_DEVICES="3,9,1")
        assert got == [uuids[3]], (uuids, got)


def test_what_a_program_sees_is_chosen_once():
    """`vcuda run --software` starts the agent with the program's environment, but for its choice."""
    with folder() as path:
        for value, want in (("1,0", 2), ("1", 1)):
            got = subprocess.run([os.path.join(BIN, "vcuda"), "run", "--software", "--",
                                  os.path.join(BUILD, "programs", "13", "device-query")], capture_output=True, text=True,
                                 timeout=60, env=environment({"VCUDA_SOFTGPU_DEVICES": "2", "TMPDIR": path,
                                                              "CUDA_VISIBLE_DEVICES": value}))
            assert got.returncode == 0 and got.stdout.count(": vcuda software GPU") == want, (value, got)
