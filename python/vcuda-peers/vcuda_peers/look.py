# SPDX-License-Identifier: Apache-2.0
"""What is told of a network: status and doctor."""
import asyncio

import httpx
from pydantic import BaseModel, create_model

from . import directory, validator
from .directory import Count
from .errors import PeersError
from .network import secret

MOST_BYTES = 4 << 20
PATIENCE = 2  # seconds for a whole answer, however often a byte comes


class Session(BaseModel, strict=True):
    launches: Count
    bytes_received: Count
    bytes_sent: Count


class Gpu(BaseModel, strict=True):
    memory_free_bytes: Count


async def _ask(client, worker, what, form):
    """Of its control port, the one behind that of its sessions."""
    host, _, port = worker.address.rpartition(":")
    url = f"http://{host}:{int(port) + 1}/v1/{what}"
    async with asyncio.timeout(PATIENCE), client.stream("GET", url) as got:
        text = b""
        async for piece in got.raise_for_status().aiter_raw():
            text += piece
            if len(text) > MOST_BYTES:
                raise ValueError
        return create_model("Answer", **{what: list[form]}).model_validate_json(text)


async def _use(client, worker):
    """{}: it is not reached, its answer is none, or there is no token for that."""
    try:
        sessions = (await _ask(client, worker, "sessions", Session)).sessions
        gpus = (await _ask(client, worker, "gpus", Gpu)).gpus
    except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL):
        return {}
    return {"sessions": len(sessions), "free_bytes": sum(one.memory_free_bytes for one in gpus),
            **{key: sum(getattr(one, key) for one in sessions) for key in Session.model_fields}}


async def _uses(workers, token):
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE,
                                 trust_env=False) as client:
        return await asyncio.gather(*(_use(client, one) for one in workers))


def status(network):
    """{workers, unreadable, away}: away are those with a verdict and without an entry."""
    good, bad = directory.workers(network)
    said, token = directory.verdicts(network), (secret(network.token_file).split() or [""])[0]
    rows = []
    for one, use in zip(good, asyncio.run(_uses(good, token))):
        row = {"node": one.node, "address": one.address, "devices": one.devices, "gpus": one.gpus}
        if one.free_bytes:
            row["free_bytes"] = sum(one.free_bytes)
        rows.append({**row, "verdict": "unjudged", "reason": "", **_said(said.pop(one.node, None)), **use})
    away = [{"node": node, **_said(verdict)} for node, verdict in said.items() if verdict]
    return {"workers": rows, "unreadable": bad, "away": away}


def _said(verdict):
    names = {"state": "verdict", "memory_bytes": "tested_bytes"}
    fields = verdict.model_dump(exclude={"address"}, exclude_unset=True) if verdict else {}
    return {names.get(key, key): value for key, value in fields.items()}


def doctor(network, vcuda):
    """[(what, what is wrong with it or "", what it is if nothing is)]"""
    try:
        good, bad = directory.workers(network)
    except PeersError as error:
        return [("directory", str(error), "")]
    rows = [("directory", "", f"{network.directory} serves; {len(good)} workers")]
    rows += [(node, "its entry in the directory cannot be read", "") for node in bad]
    rows += [(one.node, validator.answers(vcuda, one.address, network.token_file),
              f"{one.address} answers and takes the token") for one in good]
    try:
        head = directory.validator(network).head
    except PeersError as error:
        return rows + [("validator", "", str(error))]
    wrong = directory.reached(head)
    return rows + [("validator", wrong and f"Ray's head {head} is not reached: {wrong}",
                    f"Ray's head {head} is reached")]
