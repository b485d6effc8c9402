# SPDX-License-Identifier: Apache-2.0
"""A model over the GPUs of several people's machines (docs/PEERS.md).

    user = UserNode()
    model, optimizer = user.create_distributed_model(model, AdamW)
    optimizer(lr=5e-5)

The program is started by `vcuda-peers run NETWORK.yaml -- python3 PROGRAM`.
"""
from .errors import PeerLost, PeersError

__all__ = ["DistributedModel", "PeerLost", "PeersError", "UserNode", "ValidatorNode", "WorkerNode"]


def __getattr__(name):
    """PyTorch is loaded by who wants a model: `vcuda-peers status` does not."""
    if name in ("DistributedModel", "UserNode"):
        from . import model
        return getattr(model, name)
    if name in ("ValidatorNode", "WorkerNode"):
        from . import nodes
        return getattr(nodes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
