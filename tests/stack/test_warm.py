# SPDX-License-Identifier: Apache-2.0
"""What a worker does before it has a session: it opens the libraries that sessions used."""
import os
import re

from stack import BUILD, stack, wait_for

PROGRAM = os.path.join(BUILD, "cudnn", "9", "steady")
OPENED = r"event=library\.open .*name=libcudnn\.so\.9"


def test_the_libraries_that_sessions_used_are_open_before_the_next():
    with stack(agent=("--warm", "1")) as s:
        assert not re.search(OPENED, s.agent.log())
        # The first session's own worker, and that of the second, which waited when it began.
        for sessions in (1, 2):
            app = s.app("plan", 1, program=PROGRAM)
            assert app.wait(20) == 0, app.text()
            wait_for(lambda: s.agent.log().count("event=session.close") == sessions, 10,
                     "the session is over")
        # The third worker has no session and needs none for it.
        wait_for(lambda: len(re.findall(OPENED, s.agent.log())) == 3, 10, "a worker opens it by itself")
        app = s.app("plan", 1, program=PROGRAM)
        assert app.wait(20) == 0, app.text()
        s.agent.check()
