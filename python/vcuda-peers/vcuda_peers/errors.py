# SPDX-License-Identifier: Apache-2.0


class PeersError(Exception):
    """One sentence for people, which names what is wrong."""
