# SPDX-License-Identifier: Apache-2.0


class PeersError(Exception):
    """One sentence for people, which names what is wrong."""


class PeerLost(PeersError):
    """A worker is gone, and what it held with it. A program that ends by it is started again (`vcuda-peers run --retries`)."""
    STATUS = 75  # EX_TEMPFAIL of sysexits.h: the exit status of such a program
