# SPDX-License-Identifier: Apache-2.0
"""Limits of a pod: device memory summed over its processes, and how many GPUs they see."""
import os
import re
import struct
import subprocess

from stack import (BIN, BUILD, MIB, NOT_PERMITTED, OUT_OF_MEMORY, Agent, App, Sidecar, environment,
                   folder, one_line, stack, wait_for)

LIMIT = 256 * MIB
STEP = 2 * MIB  # a granule
UID = "5f3c9f5e-1111-2222-3333-444455556666"
CLIENT = os.path.join(BIN, "vcuda-client")


def sees(app):
    got = app.line(r"^sees (\d+) GPUs of (\d+) bytes, info (\d+) of (\d+)", 20)
    return [int(got.group(i)) for i in range(1, 5)]


def takes(app):
    got = app.line(r"^error (\d+) after (\d+) bytes, info (\d+) of (\d+)", 20)
    return [int(got.group(i)) for i in range(1, 5)]


def end(*apps):
    for app in apps:
        app.close_stdin()
        app.right()


def test_a_pod_sees_a_gpu_of_its_limit_and_no_byte_beyond_it():
    with stack(sidecar=["--vram-limit", "256Mi"]) as s:
        app = s.app("limit", STEP)
        count, total, free, info = sees(app)
        assert (count, total, info) == (1, LIMIT, LIMIT) and free <= LIMIT, (count, total, free)
        error, got, free, info = takes(app)
        assert (error, got, free, info) == (OUT_OF_MEMORY, LIMIT, 0, LIMIT), (error, got, free)
        nvml = subprocess.run([os.path.join(BIN, "vcuda"), "smi"], capture_output=True, text=True,
                              timeout=20, env=environment({"VCUDA_SOCKET": s.sidecar.socket}))
        assert re.search(r"256 MiB / +256 MiB", nvml.stdout), nvml.stdout + nvml.stderr
        end(app)


def test_a_limit_is_a_smaller_card():
    """Programs that fill the device, free, and go on, do so within a limit."""
    with stack(sidecar=["--vram-limit", "256Mi"]) as s:
        for name in "memory-full", "error-memory", "memory-fragments":
            App(socket=s.sidecar.socket,
                program=os.path.join(BUILD, "programs", "13", name)).right(60)


def test_the_limit_holds_for_all_processes_of_a_pod_together():
    env = {"POD_UID": UID, "POD_NAMESPACE": "ns", "VCUDA_VRAM_LIMIT": "256Mi"}
    with folder() as path:
        agent = Agent(path)
        # Two sidecars of one pod (one was restarted), and one of another pod.
        same = [Sidecar(os.path.join(path, n), agent, env=dict(env, POD_NAME=n)) for n in "ab"]
        other = Sidecar(os.path.join(path, "c"), agent,
                        env=dict(env, POD_NAME="c", POD_UID=UID.replace("5", "6")))
        first = App("hold", 160 * MIB, socket=same[0].socket)
        first.line("^holding", 20)
        for socket, room in ((same[0].socket, 96), (same[1].socket, 0), (other.socket, 256)):
            app = App("limit", STEP, socket=socket)
            if room:
                _, total, free, _ = sees(app)
                assert (total, free) == (LIMIT, room * MIB), (total, free)
                error, got, _, _ = takes(app)
                assert (error, got) == (OUT_OF_MEMORY, room * MIB), (error, got)
                if socket == same[0].socket:
                    holder = app
                else:
                    end(app)
            else:
                # The last byte is taken: not even a page is left for it.
                app.line(r"cudaMalloc\(&block, 4096\) gave 2", 20)
                app.wait()
        end(first, holder)
        wait_for(lambda: not agent.sessions(), 5, "the sessions are over")
        app = App("limit", STEP, socket=same[1].socket)
        assert takes(app)[1] == LIMIT
        end(app)


def test_a_tenants_budget_holds_for_programs_that_say_no_limit():
    """Of one tenant, in two pods that say nothing; another tenant has the whole GPU."""
    with folder() as path:
        files = {name: os.path.join(path, name) for name in ("tokens", "a", "b")}
        for name, text in (("tokens", "token-a team-a 256Mi\ntoken-b team-b\n"), ("a", "token-a"),
                           ("b", "token-b")):
            with open(files[name], "w") as file:
                file.write(text)
        agent = Agent(path, "--token-file", files["tokens"])
        first, second, other = [Sidecar(os.path.join(path, n), agent, "--token-file", files[who],
                                        env={"POD_NAMESPACE": "ns", "POD_NAME": n})
                                for n, who in (("one", "a"), ("two", "a"), ("three", "b"))]
        holder = App("hold", 160 * MIB, socket=first.socket)
        holder.line("^holding", 20)
        app = App("limit", STEP, socket=second.socket)
        _, total, free, _ = sees(app)
        assert (total, free) == (LIMIT, 96 * MIB), (total, free)
        error, got, _, _ = takes(app)
        assert (error, got) == (OUT_OF_MEMORY, 96 * MIB), (error, got)
        large = App("hold", 2 * LIMIT, socket=other.socket)
        large.line("^holding", 20)
        assert {s["tenant"] for s in agent.sessions()} == {"team-a", "team-b"}, agent.sessions()
        end(app, holder, large)
        agent.stop()


def test_no_byte_over_a_tenants_budget_whatever_its_processes_do():
    """Four processes of four threads each allocate and free blocks of any size. CHURN: how often
    each thread does; the long tier is CHURN=62500, a million operations."""
    operations = os.environ.get("CHURN", "1250")
    with folder() as path:
        files = {name: os.path.join(path, name) for name in ("tokens", "a", "held")}
        for name, bytes_ in (("tokens", b"token-a team-a\n"), ("a", b"token-a"), ("held", bytes(24))):
            with open(files[name], "wb") as file:
                file.write(bytes_)
        agent = Agent(path, "--token-file", files["tokens"], "--set",
                      "tenants.team-a.device_bytes=256Mi")
        sockets = [Sidecar(os.path.join(path, str(n)), agent, "--token-file", files["a"]).socket
                   for n in range(2)]
        apps = [App("churn", files["held"], operations, socket=sockets[n % 2]) for n in range(4)]
        for app in apps:
            app.right(55)
        with open(files["held"], "rb") as file:
            left, most, refused = struct.unpack("3Q", file.read())
        assert left == 0 and LIMIT // 2 < most <= LIMIT and refused, (left, most, refused)
        wait_for(lambda: agent.gpu()["memory_leased_bytes"] == 0, 10, "all of it came back")
        assert "vcuda_agent_ledger_bugs_total 0\n" in agent.http("/metrics")
        agent.stop()


def test_a_tenants_limits_by_its_name_are_the_lower_ones():
    with folder() as path:
        tokens = os.path.join(path, "tokens")
        with open(tokens, "w") as file:
            file.write("token-a team-a 512Mi 1\ntoken-b team-b\n")
        agent = Agent(path, "--token-file", tokens, "--set", "tenants.team-a.device_bytes=256Mi",
                      "--set", "tenants.team-a.sessions=5", "--set", "tenants.*.device_bytes=128Mi")
        for name, bytes_ in (("a", LIMIT), ("b", LIMIT // 2)):
            with open(os.path.join(path, name), "w") as file:
                file.write(f"token-{name}")
            side = Sidecar(os.path.join(path, "s" + name), agent, "--token-file",
                           os.path.join(path, name))
            app = App("limit", STEP, socket=side.socket)
            assert sees(app)[1] == bytes_, name
            if name == "a":
                second = App("sum", 1, 64, socket=side.socket)
                assert second.wait() != 0 and str(NOT_PERMITTED) in second.text(), second.text()
            end(app)
        agent.stop()


def test_a_pod_gets_as_many_gpus_as_it_asks_for_the_freest_first():
    with folder() as path:
        agent = Agent(path, env={"VCUDA_SOFTGPU_DEVICES": "3"})
        whole, one, two = [
            Sidecar(os.path.join(path, str(n)), agent,
                    env={"VCUDA_GPU_COUNT": str(n), "POD_UID": f"uid-{n}"}) for n in range(3)]
        app = App("limit", STEP, socket=whole.socket)
        assert sees(app)[0] == 3
        place = [app.line(rf"^GPU {i} works: (\S+)").group(1) for i in range(3)]
        takes(app)  # all of GPU 0
        second = App("limit", STEP, socket=one.socket)
        assert sees(second)[0] == 1
        got = second.line(r"^GPU 0 works: (\S+)").group(1)
        assert got in place[1:], (got, place)
        takes(second)
        # A process of the same pod gets the same GPU, though another is freer.
        third = App("sum", 1, 64, socket=one.socket)
        assert third.wait() != 0 and "gave 2" in third.text(), third.text()
        used = [s for s in agent.sessions() if s["pid"] == second.pid][0]["memory"]
        assert [m["leased_bytes"] > 0 for m in used] == [p == got for p in place], used
        end(second)
        wait_for(lambda: len(agent.sessions()) == 1, 5, "that pod is gone")
        fourth = App("limit", STEP, socket=two.socket)
        assert sees(fourth)[0] == 2
        assert [fourth.line(rf"^GPU {i} works: (\S+)").group(1) for i in (0, 1)] == place[1:]
        end(app, fourth)


def test_more_gpus_than_there_are_is_an_error_that_says_so():
    with stack(sidecar=["--gpu-count", "2"]) as s:
        app = s.app("sum", 1, 64)
        assert app.wait() != 0 and str(NOT_PERMITTED) in app.text(), app.text()
        wait_for(lambda: "2 GPUs are asked for, this agent has 1" in s.sidecar.log(), 5, "the text")
        one_line([CLIENT, "probe", "--agent", s.agent.address, "--gpu-count", "2"],
                 "2 GPUs are asked for", status=3)


def test_of_several_agents_the_freest_that_serves_is_taken_and_kept():
    with folder() as path:
        small = Agent(os.path.join(path, "1"), env={"VCUDA_SOFTGPU_MEMORY": "256M"})
        large = Agent(os.path.join(path, "2"), env={"VCUDA_SOFTGPU_MEMORY": "1G"})
        names = f"127.0.0.1:1,{small.address}, {large.address}"
        sidecar = Sidecar(path, names, env={})
        held = App("hold", 900 * MIB, socket=sidecar.socket)
        held.line("^holding", 20)
        # The other one is freer now, but this pod's processes stay together.
        App("sum", 1, 64, socket=sidecar.socket).right()
        assert len(large.sessions()) >= 1 and not small.sessions()
        end(held)
        large.stop()
        App("sum", 1, 64, socket=sidecar.socket).right()
        got = subprocess.run([CLIENT, "probe", "--agent", names], capture_output=True, text=True,
                             timeout=10, env=environment())
        assert small.address in got.stdout, got


def test_of_two_pods_that_begin_at_once_each_has_an_agent():
    """Both ask when nobody is there, and would take the same one: two ranks of a job, say, each of whom wants a GPU."""
    with folder() as path:
        agents = [Agent(os.path.join(path, str(i)), "--warm", "2") for i in range(2)]
        names = ",".join(agent.address for agent in agents)
        for turn in range(12):
            sidecars = [Sidecar(os.path.join(path, f"{turn}-{i}"), names) for i in range(2)]
            apps = [App("hold", MIB, socket=sidecar.socket) for sidecar in sidecars]
            for app in apps:
                app.line("^holding", 30)
            assert [len(agent.sessions()) for agent in agents] == [1, 1], turn
            end(*apps)
            for sidecar in sidecars:
                sidecar.stop()
            wait_for(lambda: not any(agent.sessions() for agent in agents), 10, "the sessions are over")


def test_shared_memory_has_a_limit_and_beyond_it_a_program_is_told():
    with stack(sidecar=["--shm-size", "40Mi"]) as s:
        apps = [s.app("hold", MIB) for _ in range(3)]
        for app in apps:
            app.line("^holding", 20)
        fourth = s.app("hold", MIB)
        assert fourth.wait() != 0 and "gave 2" in fourth.text(), fourth.text()
        wait_for(lambda: "shm_size" in s.sidecar.log(), 5, "the text")
        end(*apps)
        s.app("sum", 1, 64).right()


def test_bad_environment_is_named():
    for name, value in (("VCUDA_VRAM_LIMIT", "4Q"), ("VCUDA_GPU_COUNT", "many"),
                        ("VCUDA_IPC", "both"), ("VCUDA_SHM_SIZE", "-1"), ("VCUDA_AGENT", "a:99999"),
                        ("VCUDA_TOKEN_FILE", "/nowhere")):
        one_line([CLIENT, "run"], name, value, status=2, env={name: value})
