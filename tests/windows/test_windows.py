# SPDX-License-Identifier: Apache-2.0
"""The Windows client under wine64: what programs print, how they are started, and what they are told when things fail."""
import contextlib
import os
import re
import signal
import subprocess

from stack import App, Agent, Sidecar, environment, folder, stack, wait_for

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
WINE = os.environ.get("WINE", "/usr/lib/wine/wine64")
DLLS = os.path.join(BUILD, "windows")
PROGRAMS = os.path.join(DLLS, "tests")
PREFIX = os.path.join(DLLS, "prefix")


def of_wine(path):
    return "Z:" + path.replace("/", "\\")


def wine_environment(more=None):
    return environment({"WINEPREFIX": PREFIX, "WINEDEBUG": "-all", "WINEPATH": of_wine(DLLS), **(more or {})})


@contextlib.contextmanager
def wine():
    """Whatever wine started in our prefix ends with the test."""
    try:
        yield
    finally:
        for word in ("-k", "-w"):
            subprocess.run([os.path.join(os.path.dirname(WINE), "wineserver64"), word], env=wine_environment(),
                           timeout=60, check=False, capture_output=True)


def program(name, *words, env=None):
    """NAME.exe, with the DLLs in PATH."""
    return App(WINE, of_wine(os.path.join(PROGRAMS, name + ".exe")), *words, program="/usr/bin/env",
               preload=False, env={**wine_environment(env), "PATH": os.environ["PATH"]})


def vcuda(*words, env=None):
    """vcuda.exe, with no DLL in PATH."""
    return App(WINE, of_wine(os.path.join(DLLS, "vcuda.exe")), *words, program="/usr/bin/env", preload=False,
               env={**wine_environment(env), "WINEPATH": "", "PATH": os.environ["PATH"]})


def said(app, seconds=120, status=0):
    got = app.wait(seconds)
    assert got == status, f"exit status {got}, not {status}: {app.text()[-800:]}"
    return app.text().replace("\r", "")


@contextlib.contextmanager
def agent(*flags):
    with folder() as path, wine():
        yield Agent(path, *flags)


def same_as_on_linux(*names):
    with stack() as s, wine():
        for name in names:
            linux = s.app(program=os.path.join(PROGRAMS, name))
            expected = said(linux)
            windows = said(program(name, env={"VCUDA_AGENT": s.agent.address}))
            assert expected and windows == expected, f"{name}: Linux says\n{expected}\nWindows\n{windows}"


def right(*names):
    with agent() as a:
        for name in names:
            text = said(program(name, env={"VCUDA_AGENT": a.address}))
            assert "WRONG" not in text and "wrong" not in text, f"{name}: {text}"
        wait_for(lambda: not a.sessions(), 5, "the sessions ended with their programs")
        assert a.log().count('reason="the client ended it"') == len(names), a.log()[-2000:]


def test_driver_api_prints_what_it_prints_on_linux():
    same_as_on_linux("driver")


def test_runtime_api_prints_what_it_prints_on_linux():
    same_as_on_linux("runtime13", "runtime12")


def test_nvml_prints_what_it_prints_on_linux():
    same_as_on_linux("nvml")


def test_cublas_computes_what_it_does_on_linux():
    right("cublas-products", "cublas13-products", "cublas-level1", "cublas-others")


def test_cublas_with_64_bit_arguments():
    right("cublas-wide")


def test_other_libraries_compute_what_they_do_on_linux():
    right("cublaslt-matmul", "cudnn-pooling", "cufft-statuses", "curand-numbers", "cusolver-cholesky",
          "cusparse-vectors", "cusparselt-matmul")


def test_what_there_is_not_says_so():
    with agent() as a:
        text = said(program("absent", env={"VCUDA_AGENT": a.address}))
    assert text.strip().split("\n") == [
        "managed memory: 0, 801", "handles of Windows: 0, 801", "descriptors: 0, 801",
        "pinned memory that a kernel reaches: 42", "the program's own memory that a kernel reaches: 42"], text


def test_threads_come_and_go():
    with agent() as a:
        assert "200 of 200 threads right" in said(program("threads", 50, env={"VCUDA_AGENT": a.address}))
        wait_for(lambda: not a.sessions(), 5, "the session ended with its program")


def test_memory_of_one_process_in_another():
    with agent() as a:
        text = said(program("ipc", env={"VCUDA_AGENT": a.address}))
        assert "the child read 41" in text and "the parent reads 42" in text, text


def test_vcuda_run_starts_it_with_dlls_and_agent():
    with agent() as a:
        text = said(vcuda("run", "--agent", a.address, "--", of_wine(os.path.join(PROGRAMS, "loop.exe")), 3))
        assert "3 rounds right" in text, text
        text = said(vcuda("run", "--agent", "127.0.0.1:1", "--", of_wine(os.path.join(PROGRAMS, "loop.exe"))), status=3)
        assert "802" in text, text


def test_role_client_names_the_agent_while_it_runs():
    with agent() as a:
        host, port = a.address.split(":")
        said(program("loop", 1), status=3)
        client = vcuda("-role", "client", "-ip", host, "-net", "native", "-send_port", port, "-recv_port",
                       a.ports["send"])
        client.line("programs that are started now use the GPUs of " + a.address, 60)
        assert "1 rounds right" in said(program("loop", 1))
        os.kill(client.pid, signal.SIGKILL)
        client.wait()


def one_line(app, needle, status=2):
    text = said(app, status=status)
    assert len(text.strip().split("\n")) == 1 and needle in text, text


def test_bad_input_is_one_sentence():
    with wine():
        one_line(vcuda("run"), "which program?")
        one_line(vcuda("run", "--agent", "h", "--"), "which program?")
        one_line(vcuda("run", "--", "a.exe"), "on which agent?")
        one_line(vcuda("run", "--agent"), "--agent needs a value")
        one_line(vcuda("run", "--fast", "--", "a.exe"), "unknown flag '--fast'")
        one_line(vcuda("run", "--agent", "h", "--token-file", "Z:\\none", "--", "a.exe"), "Z:\\none: there is no such file")
        one_line(vcuda("run", "--agent", "h", "--", "none.exe"), "none.exe: it cannot be started", status=127)
        one_line(vcuda("stop"), "unknown command 'stop'")
        one_line(vcuda("-role", "server"), "on Windows it is client")
        one_line(vcuda("-role", "client", "-ip", "h", "-net", "light"), "on Windows it is native")
        one_line(vcuda("-role", "client"), "-ip HOST")
        one_line(vcuda("-role", "client", "-ip", "h", "-send_port", "70000"), "'70000' is not a port")


def refused(number, text, env):
    got = said(program("loop", 1, env=env), status=3)
    assert f"cuInit(0): {number} " in got and text in got, got


def test_other_ways_to_an_agent_are_refused_by_name():
    with wine():
        for way in ("tls", "light", "local", "unix"):
            refused(802, f"{way}:// is not had on Windows", {"VCUDA_AGENT": f"{way}://host:1"})
        refused(802, "light is not had on Windows", {"VCUDA_AGENT": "host", "VCUDA_PROTOCOL": "light"})
        refused(802, "TLS is configured", {"VCUDA_AGENT": "host", "VCUDA_CA": "a.pem"})
        refused(802, "VCUDA_GRACE", {"VCUDA_AGENT": "host", "VCUDA_GRACE": "soon"})


def test_no_agent_and_no_server():
    with wine():
        got = said(program("loop", 1), status=3)
        assert "cuInit(0): 100 CUDA_ERROR_NO_DEVICE" in got, got
        refused(802, "connection refused: is gpu-agent running there", {"VCUDA_AGENT": "127.0.0.1:1"})


def test_a_token_is_needed_and_must_fit():
    with folder() as path:
        good, bad = os.path.join(path, "good"), os.path.join(path, "bad")
        for file, token in ((good, "this-is-the-token"), (bad, "this-is-another")):
            with open(file, "w", encoding="utf-8") as out:
                out.write(token + "\n")
            os.chmod(file, 0o600)
        with agent("--token-file", good) as a:
            address = {"VCUDA_AGENT": a.address}
            refused(800, "token", {**address, "VCUDA_TOKEN_FILE": of_wine(bad)})
            refused(800, "token", address)
            text = said(vcuda("run", "--agent", a.address, "--token-file", of_wine(good), "--",
                              of_wine(os.path.join(PROGRAMS, "loop.exe")), 1))
            assert "1 rounds right" in text, text


def test_a_lost_agent_is_told():
    with agent() as a:
        app = program("loop", 1000000, env={"VCUDA_AGENT": a.address})
        app.line("^started", 60)
        a.stop()
        text = said(app, 60, status=3)
        assert re.search(r"cuMemcpy\w+\(.*\): 911 ", text), text


def test_connections_that_are_cut_are_resumed():
    with agent() as a:
        app = program("loop", 60, env={"VCUDA_AGENT": f"fault+native://{a.address}?cut-after-bytes=9000007"})
        assert "60 rounds right" in said(app)
        metrics = a.http("/metrics")
        resumes = re.search(r'vcuda_agent_resumes_total\{result="resumed"\} (\d+)', metrics)
        assert resumes and int(resumes.group(1)) >= 3, resumes and resumes.group(0)
        wait_for(lambda: not a.sessions(), 5, "the session ended with its program")


def test_large_copies_go_over_stripes():
    with agent() as a:
        app = program("loop", 400, env={"VCUDA_AGENT": a.address})
        app.line("^started", 60)
        wait_for(lambda: any(s["lanes"] for s in a.sessions()), 60, "a session with stripes")
        said(app)
