# SPDX-License-Identifier: Apache-2.0
"""Times by class, at agent and sidecar: histograms that grow, exemplars that name a session, percentiles of calls."""
import json
import os
import re
import subprocess
import urllib.request

from stack import BIN, MIB, environment, stack, wait_for

CLASSES = ["post", "call", "copy_in", "copy_out", "library", "module", "attach"]


def histograms(text, name):
    """{class: (buckets, sum, count)} of a histogram in Prometheus' text; its shape is checked."""
    found = {}
    for kind in CLASSES:
        buckets = [(bound, int(value)) for bound, value in re.findall(
            rf'^{name}_bucket{{class="{kind}",le="([^"]+)"}} (\d+)', text, re.M)]
        total = float(re.search(rf'^{name}_sum{{class="{kind}"}} (\S+)$', text, re.M).group(1))
        count = int(re.search(rf'^{name}_count{{class="{kind}"}} (\d+)$', text, re.M).group(1))
        assert len(buckets) == 13 and buckets[-1] == ("+Inf", count), (kind, buckets, count)
        bounds = [float(bound) for bound, _ in buckets]
        values = [value for _, value in buckets]
        assert bounds == sorted(bounds) and values == sorted(values), (kind, buckets)
        assert (total > 0) == (count > 0), (kind, total, count)
        found[kind] = (buckets, total, count)
    return found


def client(s, *words):
    got = subprocess.run([os.path.join(BIN, "vcuda-client"), *words, "--socket", s.sidecar.socket],
                         capture_output=True, text=True, timeout=20, env=environment())
    assert got.returncode == 0 and not got.stderr, got.stderr
    return got.stdout


def openmetrics(s):
    url = f"http://127.0.0.1:{s.agent.ports['control']}/metrics"
    request = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    with urllib.request.urlopen(request, timeout=15) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        return answer.read().decode()


def check_exemplars(text, name, session):
    """Each exemplar lies in its bucket and names the session."""
    rows = re.findall(rf'^{name}_bucket{{class="(\w+)",le="([^"]+)"}} \d+ # {{session="([0-9a-f]+)"}} (\S+)', text, re.M)
    assert {kind for kind, *_ in rows} >= {"post", "call", "copy_in", "copy_out", "module", "attach"}, rows
    for kind, bound, named, value in rows:
        assert named == session, (kind, named, session)
        assert float(value) <= float(bound), (kind, bound, value)
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1
    families = re.findall(r"^# TYPE (\S+) ", text, re.M)
    assert len(families) == len(set(families)), families
    assert not [family for family in families if family.endswith("_total")], families


def test_histograms_by_class_and_exemplars_that_name_the_session():
    with stack() as s:
        app = s.app("load", 200)
        app.line("^loaded", 20)
        session = s.agent.sessions()[0]["id"]

        def told():
            return histograms(s.agent.http("/metrics"), "vcuda_agent_call_seconds")["post"][2] >= 192
        wait_for(told, 5, "the worker's second")
        agent = histograms(s.agent.http("/metrics"), "vcuda_agent_call_seconds")
        sidecar = histograms(client(s, "metrics"), "vcuda_sidecar_call_seconds")
        for kind in ("post", "call", "copy_in", "copy_out", "module", "attach"):
            assert agent[kind][2] >= 1 and sidecar[kind][2] >= 1, (kind, agent[kind], sidecar[kind])
        assert sidecar["post"][2] >= 200, sidecar["post"]  # the sidecar counts each
        # What the sidecar sees of a call is what the agent needed, and the way.
        assert sidecar["call"][1] > agent["call"][1], (sidecar["call"], agent["call"])
        check_exemplars(openmetrics(s), "vcuda_agent_call_seconds", session)
        check_exemplars(client(s, "metrics", "--openmetrics"), "vcuda_sidecar_call_seconds", session)
        assert "# {" not in s.agent.http("/metrics") and "# {" not in client(s, "metrics")
        app.close_stdin()
        app.right()
        wait_for(lambda: not s.agent.sessions(), 10, "the session is over")
        after = histograms(client(s, "metrics"), "vcuda_sidecar_call_seconds")
        assert all(after[kind][2] >= sidecar[kind][2] for kind in CLASSES), (after, sidecar)


def test_percentiles_of_each_call_on_request():
    with stack() as s:
        app = s.app("load", 100)
        app.line("^loaded", 20)
        env = environment({"VCUDA_SOCKET": s.sidecar.socket})
        got = subprocess.run([os.path.join(BIN, "vcuda"), "stats", "--json"], capture_output=True,
                             text=True, timeout=20, env=env)
        assert got.returncode == 0, got.stderr
        one = json.loads(got.stdout)["sessions"][0]
        assert one["session"] == s.agent.sessions()[0]["id"] and one["pid"] == app.pid, one
        calls = {call["name"]: call for call in one["calls"]}
        assert calls["vcudaOpen"]["count"] == 1 and calls["vcudaCopyOut"]["count"] >= 100, calls
        for call in calls.values():
            assert 0 < call["p50_ns"] <= call["p90_ns"] <= call["p99_ns"] < 20e9, call
        table = subprocess.run([os.path.join(BIN, "vcuda"), "stats"], capture_output=True, text=True,
                               timeout=20, env=env).stdout
        assert re.search(r"^  vcudaCopyOut +\d+ +[\d.]+ +[\d.]+ +[\d.]+$", table, re.M), table
        app.close_stdin()
        app.right()


def test_the_last_error_of_a_session_is_told():
    with stack() as s:
        well = s.app("hold", MIB)
        well.line("^holding", 20)
        app = s.app("fault", "address", "hold")
        app.line("^error 700", 20)

        def told():
            return {one["pid"]: one["last_error"] for one in s.agent.sessions()}
        wait_for(lambda: told().get(app.pid), 5, "the session's last error")
        assert told()[app.pid].startswith("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), told()
        assert told()[well.pid] == "", told()
        for one in (app, well):
            one.close_stdin()
            one.wait()
