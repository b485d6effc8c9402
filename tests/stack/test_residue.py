# SPDX-License-Identifier: Apache-2.0
"""What a session leaves in device memory is not there for the next one, of whichever tenant.

RESIDUE_MIB: how much of it, RESIDUE_DRIVER: whose (tests/gpu/tenants.sh: 16 GiB of NVIDIA's).
"""
import os

from stack import stack

MIB = int(os.environ.get("RESIDUE_MIB", "8"))
DRIVER = os.environ.get("RESIDUE_DRIVER", "software")


def test_a_session_finds_nothing_of_those_before_it():
    with stack(driver=DRIVER) as s:
        for _ in range(5):
            app = s.app("residue", MIB)
            got = app.line(r"^found (\d+), then (\d+) of (\d+)", 50)
            found, then, words = [int(got.group(i)) for i in (1, 2, 3)]
            app.right()
            # The same search finds what is there.
            assert then == words == MIB << 17, (then, words)
            assert found == 0, f"{found} words of another session"
