# SPDX-License-Identifier: Apache-2.0
"""Logs: one session has one identifier in program, sidecar, front and worker, in both formats."""
import json
import re

from stack import stack, wait_for

POD = "science/train-0"


def lines_of(log, session):
    """The lines of a JSON log about that session, by component."""
    found = {}
    for line in log.splitlines():
        entry = json.loads(line)
        assert list(entry) == ["ts", "level", "component", "pid", "event", "session", "pod", "text"], line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["ts"]), line
        if entry["session"] == session:
            found.setdefault(entry["component"], []).append(entry)
    return found


def session_of(app):
    name = app.line(r"^vcuda: session=([0-9a-f]{32}) joined the agent", 20).group(1)
    app.line("^holding", 20)
    app.close_stdin()
    app.right()
    return name


def test_one_identifier_names_a_session_in_the_logs_of_all_four():
    with stack(agent=("--log-format", "json"),
               sidecar=("--log-format", "json", "--pod", POD)) as s:
        name = session_of(s.app("hold", 1 << 20, env={"VCUDA_DEBUG": "1"}))
        other = session_of(s.app("hold", 1 << 20, env={"VCUDA_DEBUG": "1"}))
        wait_for(lambda: s.agent.log().count("session.close") == 2, 10, "both sessions are over")
        wait_for(lambda: s.sidecar.log().count("channel.closed") == 2, 10, "both channels are closed")
        assert name != other
        for session in (name, other):
            sidecar = lines_of(s.sidecar.log(), session)
            agent = lines_of(s.agent.log(), session)
            assert {e["event"] for e in sidecar["sidecar"]} >= {"channel.open", "channel.closed"}, sidecar
            assert {e["event"] for e in agent["agent-front"]} >= {"session.open", "session.close"}, agent
            assert "session.end" in {e["event"] for e in agent["worker"]}, agent
            every = [entry for part in (sidecar, agent) for entries in part.values() for entry in entries]
            assert {entry["pod"] for entry in every} == {POD}, every


def test_the_same_identifier_in_logfmt():
    with stack(sidecar=("--pod", POD)) as s:
        name = session_of(s.app("hold", 1 << 20, env={"VCUDA_DEBUG": "1"}))
        about = f' session={name} pod="{POD}" '
        wait_for(lambda: "event=session.close" + about in s.agent.log(), 10, "the front's line")
        wait_for(lambda: "event=channel.closed" + about in s.sidecar.log(), 10, "the sidecar's line")
        assert "part=worker pid=" in s.agent.log() and "event=session.end" + about in s.agent.log()
