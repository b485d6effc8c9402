# SPDX-License-Identifier: Apache-2.0
"""Kills, over local://: what test_kill and test_resume_sidecar show over TCP holds where program and worker share
memory."""
import contextlib
import os
import sys

import test_resume_sidecar
from stack import folder, stack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "processes"))
import test_kill  # noqa: E402


@contextlib.contextmanager
def stack_here(agent=(), **more):
    with folder() as path:
        address = f"local://{path}/agent.sock"
        with stack(agent=(*agent, "--address", address), scheme=address, **more) as s:
            yield s
            assert "local.register" not in s.agent.log(), s.agent.log()


def here(module, name):
    """The test of that name of MODULE, with stacks that share memory."""
    def test():
        before = module.stack
        module.stack = stack_here
        try:
            getattr(module, name)()
        finally:
            module.stack = before
    return test


for _name in ("test_worker_killed_in_a_copy", "test_worker_killed_in_a_wait", "test_worker_killed_between_launches",
              "test_worker_killed_and_all_threads_return", "test_sidecar_killed_in_a_copy",
              "test_sidecar_killed_between_calls", "test_sidecar_stopped_in_a_wait",
              "test_sidecar_stopped_while_a_program_pins_memory"):
    globals()[_name] = here(test_kill, _name)

for _name in ("test_launches", "test_four_threads", "test_in_a_copy_to_the_device", "test_in_a_copy_from_the_device",
              "test_pinned_memory", "test_while_a_synchronisation_waits", "test_an_idle_program", "test_two_programs",
              "test_in_posix_memory", "test_killed_before_it_took_over", "test_sidecar_and_front_at_once",
              "test_told_to_stop_and_started_again", "test_again_and_again", "test_beyond_the_grace",
              "test_without_grace"):
    globals()[f"{_name}_of_the_sidecar"] = here(test_resume_sidecar, _name)
