# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, and how it is said: what others wrote goes to no terminal, log or Ray as it is."""
import re

# cudaError_t of a device whose agent cannot be reached, or has ended: protocol/wire/status.h
STATUS_NOT_READY, STATUS_LOST = 802, 911
SHORT = "could be had"  # ends what the known-answer test says of memory


class PeersError(Exception):
    """One sentence for people, which names what is wrong."""


class PeerLost(PeersError):
    """A worker is gone, and what it held with it. `vcuda-peers run --retries` starts a program again that
    ends by it."""
    STATUS = 75  # EX_TEMPFAIL of sysexits.h: the exit status of such a program


def shown(text, most=300):
    """TEXT as MOST characters of a line at most, of which none does anything to a terminal."""
    return re.sub("[^ -~]", "?", str(text)[:most])


def last_line(text, otherwise=""):
    """Of what a program wrote: its sentence, where it ended by one."""
    return shown((text.strip().splitlines() or [otherwise])[-1])


def mib(count):
    return f"{count / 2**20:.1f} MiB"
