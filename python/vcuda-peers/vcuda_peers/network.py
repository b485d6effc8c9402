# SPDX-License-Identifier: Apache-2.0
"""NETWORK.yaml: which directory, and how one gets in.

    name: lab
    directory: tcp://10.0.0.1:6379     # or unix:///PATH
    user: lab                          # of Redis' ACL; with password_file
    password_file: lab.password
    token_file: lab.token              # the agents' token
    ray_token_file: lab.ray-token      # the validator's Ray; that is its name if it is not given

The same file makes a machine lend its GPUs (`vcuda peer join`); what is for that alone means nothing here:
address, gpus, memory, sessions, hours. Paths are relative to the file's folder. It names secrets, so only its
owner may read it.
"""
import dataclasses
import os
import re
import stat

import yaml

from .errors import PeersError

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
DIRECTORY = re.compile(r"unix://(?P<path>/.+)|"
                       r"tcp://(?P<host>[^:/\s\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")
MOST_BYTES = 1 << 16


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    directory: str
    token_file: str
    user: str = ""
    password_file: str = ""
    ray_token_file: str = ""


WORKER = ("address", "gpus", "memory", "sessions", "hours")  # common/network.c reads and checks them
KEYS = {field.name: field.default is dataclasses.MISSING  # name: needed
        for field in dataclasses.fields(Network)}


def check_private(path, mode):
    if stat.S_ISREG(mode) and mode & 0o077:
        raise PeersError(f"{path}: others than its owner may read it (mode {mode & 0o777:o}): chmod 600 it")


def secret(path):
    """The password or token in that file: its first line."""
    try:
        with open(path) as file:
            return file.readline(4096).rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise PeersError(f"{path}: {getattr(error, 'strerror', None) or 'no text'}") from None


def _text(path):
    """Of the file that was looked at, not of one that took its name since."""
    try:
        with open(path, "rb") as file:
            check_private(path, os.fstat(file.fileno()).st_mode)
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PeersError(f"{path}: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise PeersError(f"{path}: longer than {MOST_BYTES} bytes")
    return raw


def read(path):
    """The network of that file, with absolute paths; PeersError."""
    try:
        said = yaml.safe_load(_text(path))
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise PeersError(f"{path}{f':{mark.line + 1}' if mark else ''}: it is no YAML") from None
    if not isinstance(said, dict):
        raise PeersError(f"{path}: it has no keys; needed are {', '.join(key for key in KEYS if KEYS[key])}")
    said = {key: value for key, value in said.items() if key not in WORKER}
    for key, value in said.items():
        if key not in KEYS:
            raise PeersError(f"{path}: unknown key '{key}'; known are {', '.join((*KEYS, *WORKER))}")
        if not isinstance(value, str) or not value:
            raise PeersError(f"{path}: {key} is not a text")
    for key, needed in KEYS.items():
        if needed and key not in said:
            raise PeersError(f"{path}: {key} is missing")
    if not NAME.fullmatch(said["name"]):
        raise PeersError(f"{path}: name is not 1 to 63 of a-z, 0-9 and '-': '{said['name']}'")
    got = DIRECTORY.fullmatch(said["directory"])
    if not got or (got["port"] and not 0 < int(got["port"]) < 65536):
        raise PeersError(f"{path}: directory is not unix:///PATH or tcp://HOST:PORT: '{said['directory']}'")
    if "user" in said and "password_file" not in said:
        raise PeersError(f"{path}: user wants a password_file")
    folder = os.path.dirname(os.path.abspath(path))
    said.setdefault("ray_token_file", said["name"] + ".ray-token")
    for key in ("token_file", "password_file", "ray_token_file"):
        if key in said:
            said[key] = os.path.join(folder, said[key])
    return Network(**said)
