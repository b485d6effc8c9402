# SPDX-License-Identifier: Apache-2.0


class PeersError(Exception):
    """One sentence for people, which names what is wrong."""


class PeerLost(PeersError):
    """A worker is gone, and what it held with it. `vcuda-peers run --retries` starts a program again that
    ends by it."""
    STATUS = 75  # EX_TEMPFAIL of sysexits.h: the exit status of such a program
