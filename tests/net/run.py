#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""light:// over long lines that lose, double and reorder packets, or take small or large ones: what a program copies there
and back is right, and by UDP; and how fast that is beside native, as ratios of one run.  As root: two network
namespaces, and a line between them (line.c).

    tests/net/run.py [--rate BITS] [--rtt MS] [--loss P] [--double P] [--late P] [--mtu N] [--mib N] [--native cubic,bbr]
    tests/net/run.py --each      every kind of line, and light alone; and payloads that shrink, coded both ways
    tests/net/run.py --coded     these alone, over native, with `compress: auto` and `off`

VCUDA_TEST_BARS=1: the rates of issue 16 must hold, on a machine that has nothing else to do.
"""
import argparse
import contextlib
import ctypes
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "stack")]
sys.dont_write_bytecode = True

from stack import BIN, Agent, App, Sidecar, environment, folder  # noqa: E402

BUILD = os.path.dirname(BIN)
A, B = f"vcuda-a-{os.getpid()}", f"vcuda-b-{os.getpid()}"
LIBC = ctypes.CDLL(None, use_errno=True)
ADDRESS = "10.77.0.2"


def ip(*words):
    subprocess.run(["ip", *words], check=True, timeout=10)


@contextlib.contextmanager
def inside(name):
    """This process and what it starts is in that namespace."""
    with open("/proc/self/ns/net") as home, open(f"/run/netns/{name}") as there:
        assert not LIBC.setns(there.fileno(), 0)
        try:
            yield
        finally:
            assert not LIBC.setns(home.fileno(), 0)


@contextlib.contextmanager
def line(options):
    for name in (A, B):
        ip("netns", "add", name)
    process = None
    try:
        process = subprocess.Popen([os.path.join(BUILD, "net/line"), A, B, str(options.rate), str(options.rtt * 500),
                                    str(options.loss), str(options.double), str(options.late)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        for name, address in ((A, "10.77.0.1"), (B, ADDRESS)):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "address", "add", f"{address}/30", "dev", "line")
            # The usual 500 packets are 6 ms of 1 Gb/s, for which line.c may not run.
            ip("-n", name, "link", "set", "line", "mtu", str(options.mtu), "txqueuelen", "10000", "up")
        yield
    finally:
        if process:
            process.kill()
            process.wait(10)
        for name in (A, B):
            ip("netns", "del", name)


@contextlib.contextmanager
def allowed():
    """What the kernel has may be chosen in a namespace, as long as that lasts."""
    where = "/proc/sys/net/ipv4/tcp_{}_congestion_control"
    with open(where.format("allowed")) as file:
        before = file.read()
    with open(where.format("available")) as file, open(where.format("allowed"), "w") as to:
        to.write(file.read())
    try:
        yield
    finally:
        with open(where.format("allowed"), "w") as file:
            file.write(before)


def congestion(how):
    for name in (A, B):
        with inside(name), open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as file:
            file.write(how)


def measure(path, address, mib, rounds, limit):
    with inside(A):
        sidecar = Sidecar(path, address, "--compress", "off")
        try:
            env = environment({"VCUDA_SOCKET": sidecar.socket, "LD_PRELOAD": os.path.join(BUILD, "lib/libvcuda.so")})
            got = subprocess.run([os.path.join(BUILD, "net/upload"), str(mib), str(rounds)], capture_output=True, text=True,
                                 timeout=limit, env=env)
            assert got.returncode == 0, (got.stdout, got.stderr, sidecar.log())
            if address.startswith("light") and "light.tcp" in sidecar.log():
                raise AssertionError(sidecar.log())
            return json.loads(got.stdout)
        finally:
            sidecar.stop()


def main():
    parser = argparse.ArgumentParser()
    for name, usual in (("rate", 1e8), ("rtt", 30.0), ("loss", 0.01), ("double", 0.0), ("late", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=usual)
    for name, usual in (("mtu", 1500), ("mib", 0), ("rounds", 200), ("native-mib", 4)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--native", default="cubic,bbr")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--coded", action="store_true")
    options = parser.parse_args()
    # The first quarter of a second goes to finding out what the line carries.
    options.mib = options.mib or max(64, int(2 * options.rate / 8) >> 20)
    if os.geteuid():
        print("only root makes network namespaces")
        return 77
    if options.coded:
        return coded(options)
    if not options.each:
        return compare(options)
    for change in ({"loss": 0.01}, {"loss": 0.2, "mib": 2}, {"loss": 0, "double": 0.1, "late": 0.1}, {"mtu": 1280},
                   {"mtu": 9000}):
        usual = {**vars(options), "native": "", "mib": 12, "rounds": 50}
        print(", ".join(f"{key} {value}" for key, value in change.items()), flush=True)
        compare(argparse.Namespace(**{**usual, **change}))
    return coded(argparse.Namespace(**{**vars(options), "rtt": 2.0, "loss": 0.0}))


def coded(options):
    """Either end sees that its sockets are full, and codes weights: what goes to the device, and what comes back."""
    rows = {}
    with line(options), folder() as path:
        with inside(B):
            agent = Agent(path, "--address", ADDRESS)
        for mode in "auto", "off":
            with inside(A):
                sidecar = Sidecar(os.path.join(path, mode), f"{ADDRESS}:{agent.ports['recv']}", "--compress", mode)
                app = App("bf16", options.mib, 1, 1, program=os.path.join(BUILD, "stack", "payloads"), socket=sidecar.socket)
                app.right(300)
                seconds = [float(app.text().split(way + " ")[1].split()[0]) for way in ("up", "down")]
                got = subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--json", "--socket", sidecar.socket],
                                     capture_output=True, text=True, timeout=20, env=environment(), check=True)
                pieces = json.loads(got.stdout)["totals"]["pieces"]
                fewer = [pieces[way]["payload_bytes"] / pieces[way]["wire_bytes"] for way in ("sent", "received")]
                rows[mode] = seconds, fewer
                sidecar.stop()
        agent.stop()
    times = [off / auto for off, auto in zip(rows["off"][0], rows["auto"][0])]
    print(f"bf16 coded: {times[0]:.2f} times as fast there, {times[1]:.2f} back; on the wire {rows['auto'][1][0]:.2f} and "
          f"{rows['auto'][1][1]:.2f} times fewer bytes")
    assert min(rows["auto"][1]) > 1.2 and max(rows["off"][1]) <= 1, rows
    return 0


def compare(options):
    rows = {}
    with allowed(), line(options), folder() as path:
        with inside(B):
            agent = Agent(path, "--address", f"light://{ADDRESS}")
        port = agent.ports["recv"]
        rows["light"] = measure(os.path.join(path, "light"), f"light://{ADDRESS}:{port}", options.mib, options.rounds, 300)
        print("light", rows["light"], flush=True)
        for how in filter(None, options.native.split(",")):
            congestion(how)
            rows[how] = measure(os.path.join(path, how), f"{ADDRESS}:{port}", options.native_mib, options.rounds, 300)
            print("native with", how, rows[how], flush=True)
        agent.stop()
    of_line = rows["light"]["there"] * 8 / options.rate
    trips = rows["light"]["p99"] * 1e3 / options.rtt
    print(f"light: {of_line:.2f} of the line there, {rows['light']['back'] * 8 / options.rate:.2f} back; launch and synchronize "
          f"p99 {trips:.2f} round trips")
    for how in rows.keys() - {"light"}:
        print(f"light by native with {how}: {rows['light']['there'] / rows[how]['there']:.1f} there, "
              f"{rows['light']['back'] / rows[how]['back']:.1f} back")
    if os.environ.get("VCUDA_TEST_BARS") == "1" and options.loss == 0.01 and "cubic" in rows:
        assert rows["light"]["there"] >= 10 * rows["cubic"]["there"] and of_line >= 0.7 and trips <= 3, rows
    return 0


if __name__ == "__main__":
    sys.exit(main())
