# SPDX-License-Identifier: Apache-2.0
"""vcuda top: what a person sees in a terminal, by keys; and as plain text."""
import os
import re
import subprocess

import stack as whole
from stack import BIN, MIB, environment, one_line, stack
from terminal import Terminal

VCUDA = os.path.join(BIN, "vcuda")
HELD = [16 * MIB, 64 * MIB, 32 * MIB]


def hold(s):
    apps = [s.app("hold", held) for held in HELD]
    for app in apps:
        app.line("^holding", 20)
    return apps


def memory(screen):
    """What the sessions' lines say, from the top."""
    return re.findall(r"^[0-9a-f]{8} running +\d+:\d\d +\S+ +(\d+M) ", "\n".join(screen), re.M)


def control(s):
    return f"127.0.0.1:{s.agent.ports['control']}"


def test_keys_sort_help_resize_and_quit():
    with stack() as s:
        apps = hold(s)
        top = Terminal([VCUDA, "top", "--agent", control(s), "--every", "0.2"], env=environment())
        top.until(lambda screen: sorted(memory(screen)) == ["16M", "32M", "64M"])
        assert re.search(r"^vcuda top  127\.0\.0\.1:\d+  ready  3 sessions  by GPU share", top.screen()[0]), top.screen()
        assert re.search(r"^GPU 0  \[#.*\] +112 / \d+ MiB", "\n".join(top.screen()), re.M), top.screen()
        top.press("m")
        top.until(lambda screen: memory(screen) == ["64M", "32M", "16M"] and "by memory" in screen[0])
        top.press("r")
        top.until(lambda screen: memory(screen) == ["16M", "32M", "64M"] and "reversed" in screen[0])
        top.press("h")
        top.until(lambda screen: screen[0].startswith("vcuda top: the sessions of one agent"))
        top.press("x")
        top.until(lambda screen: memory(screen) == ["16M", "32M", "64M"])
        for lines, columns in ((12, 60), (5, 40), (40, 160)):
            top.size(lines, columns)
            top.until(lambda screen: screen[0].startswith("vcuda top") and
                      any(line.startswith("SESSION") for line in screen))
        top.until(lambda screen: memory(screen) == ["16M", "32M", "64M"])
        apps[1].close_stdin()
        apps[1].right()
        top.until(lambda screen: memory(screen) == ["16M", "32M"])
        top.press("q")
        assert top.wait() == 0
        for app in (apps[0], apps[2]):
            app.close_stdin()
            app.right()


def test_goes_on_when_the_agent_is_gone():
    with stack() as s:
        top = Terminal([VCUDA, "top", "--agent", control(s), "--every", "0.2"], env=environment())
        top.until(lambda screen: "no program uses a GPU of this agent" in screen)
        whole.kill(s.agent.pid)
        top.until(lambda screen: "refused" in screen[1])
        top.press("q")
        assert top.wait() == 0


def test_once_prints_plain_text():
    with stack() as s:
        apps = hold(s)
        got = subprocess.run([VCUDA, "top", "--once", "--agent", control(s)], capture_output=True, text=True,
                             timeout=20, env=environment())
        assert got.returncode == 0 and not got.stderr, got.stderr
        lines = got.stdout.splitlines()
        assert sorted(memory(lines)) == ["16M", "32M", "64M"] and "\x1b" not in got.stdout, got.stdout
        for app in apps:
            app.close_stdin()
            app.right()
    one_line([VCUDA, "top", "--agent", "127.0.0.1:1"], "127.0.0.1:1", "refused", status=1)
    one_line([VCUDA, "top", "-x"], "-x", status=2)
    one_line([VCUDA, "top", "--every", "0"], "--every", status=2)


def test_a_tenants_token_shows_its_sessions_and_an_operators_all():
    """`vcuda top` and `vcuda smi --agent`, where the agent has two tenants."""
    with whole.folder() as path:
        def put(name, text):
            with open(os.path.join(path, name), "w") as file:
                file.write(text)
            return os.path.join(path, name)

        agent = whole.Agent(path, "--token-file", put("tokens", "token-a a\ntoken-b b\n"))
        address = f"127.0.0.1:{agent.ports['control']}"
        files = {"a": put("a", "token-a"), "b": put("b", "token-b\n"), "all": put("all", agent.http_token + " operator\n")}
        apps = []
        for name, held in (("a", HELD[0]), ("b", HELD[1])):
            side = whole.Sidecar(os.path.join(path, "s" + name), agent, "--token-file", files[name])
            apps.append(whole.App("hold", held, socket=side.socket))
            apps[-1].line("^holding", 20)
        for name, seen in (("a", ["16M"]), ("b", ["64M"]), ("all", ["16M", "64M"])):
            for words, env in ((("--token-file", files[name]), {}), ((), {"VCUDA_TOKEN_FILE": files[name]})):
                for verb in (["top", "--once"], ["smi"]):
                    got = subprocess.run([VCUDA, *verb, "--agent", address, *words], capture_output=True, text=True,
                                         timeout=20, env=environment(env))
                    assert got.returncode == 0 and not got.stderr, got.stderr
                    pids = [app.pid for app, here in zip(apps, ("16M", "64M")) if here in seen]
                    assert verb[0] == "top" or [app.pid for app in apps if f" {app.pid} " in got.stdout] == pids, got.stdout
                    assert verb[0] == "smi" or sorted(memory(got.stdout.splitlines())) == seen, got.stdout
        wrong = put("wrong", "token-c")
        for verb in (["top", "--once"], ["smi"]):
            one_line([VCUDA, *verb, "--agent", address], "/v1/", "has several tenants", status=1)
            one_line([VCUDA, *verb, "--agent", address, "--token-file", wrong], "nobody's", status=1)
            one_line([VCUDA, *verb, "--agent", address, "--token-file", "/no/such"], "/no/such", status=1)
            one_line([VCUDA, *verb, "--agent", address, "--token-file", put("none", " \n")], "no token", status=1)
        for app in apps:
            app.close_stdin()
            app.right()
        agent.stop()
