# SPDX-License-Identifier: Apache-2.0
"""`libraries:` of the agent: which of NVIDIA's libraries are found, in which major, and what a
program is told where one is missing.  Stand-ins are the software GPU's, under NVIDIA's names."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "protocol"))
import generate  # noqa: E402
from stack import BUILD, LIB, Agent, App, Sidecar, folder, wait_for

# A line for each major of each library that is described.
LINES = sum(len(one.majors) for one in generate.load().libraries.values())


def standing_in(path, *names):
    """A folder with the software GPU's library under those names, and what it needs."""
    os.makedirs(path)
    os.symlink(f"{LIB}/libvcuda-softgpu.so", f"{path}/libvcuda-softgpu.so")
    for name in names:
        family = "cudnn" if "cudnn" in name else "cublas"
        shutil.copy(f"{LIB}/libvcuda-softgpu-{family}.so", f"{path}/{name}")
    return path


def agent_with(path, text):
    """With `driver:` a path, which is not the software GPU that has its libraries beside it."""
    config = os.path.join(path, "agent.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(text)
    agent = Agent(path, "--config", config, driver=f"{LIB}/libvcuda-softgpu.so")

    def looked():
        text = agent.http("/readyz?verbose")
        return text if text.count("] lib") == LINES else None
    return agent, wait_for(looked, 10, "the agent has looked for its libraries")


def cublas(agent, path, major):
    sidecar = Sidecar(path, agent)
    app = App(program=os.path.join(BUILD, "cublas", str(major), "products"),
              socket=sidecar.socket)
    status = app.wait(60)
    return status, app.text()


def test_named_folders_and_files():
    with folder() as path:
        one = standing_in(os.path.join(path, "one"), "libcublas.so.12", "libcublasLt.so.13")
        two = standing_in(os.path.join(path, "two"), "libcudnn.so.9.1.0", "libcublas.so.12")
        agent, text = agent_with(path, f"libraries:\n  path: [/nowhere, {one}]\n"
                                 f"  cublas: {two}\n  cudnn: {two}/libcudnn.so.9.1.0\n")
        assert f"[+] libcublas.so.12: {two}/libcublas.so.12\n" in text, text
        assert f", {one}/libcublasLt.so.13\n" in text, text
        assert f", {two}/libcudnn.so.9.1.0\n" in text, text
        assert "[ ] libcudnn.so.8: missing, libcudnn.so.9 serves\n" in text, text
        assert "[ ] libcublasLt.so.12: missing, libcublasLt.so.13 serves\n" in text, text
        assert text.endswith("ok\n"), text
        status, said = cublas(agent, path, 12)
        assert status == 0, said
        assert re.search(r"event=library\.open .*name=libcublas.so.12 asked=12", agent.log()), agent.log()
        agent.stop()


def test_the_next_major_serves():
    with folder() as path:
        one = standing_in(os.path.join(path, "one"), "libcublas.so.13")
        agent, text = agent_with(path, f"library_path: {one}\n")
        assert "[ ] libcublas.so.12: missing, libcublas.so.13 serves\n" in text, text
        status, said = cublas(agent, path, 12)
        assert status == 0, said
        assert re.search(r"event=library\.open .*name=libcublas.so.13 asked=12", agent.log()), agent.log()
        agent.stop()


def test_a_missing_library_is_named():
    with folder() as path:
        agent, text = agent_with(path, "libraries:\n  path: /nowhere\n")
        assert "[ ] libcublas.so.13: missing, libcublas.so.13: cannot open" in text, text
        assert text.endswith("ok\n"), "a missing library does not make an agent unready"
        assert agent.log().count("event=library.missing name=libcublas ") == 1, agent.log()
        status, said = cublas(agent, path, 13)
        assert status not in (0, None), said
        assert "cublasCreate failed: the agent has no usable libcublas.so.13" in said, said
        assert 'name=libcublas.so.13 libraries.cublas=""' in agent.log(), agent.log()
        agent.stop()
