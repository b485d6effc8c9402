# SPDX-License-Identifier: Apache-2.0
"""NETWORK.yaml: which directory, and how one gets in.

    name: lab
    directory: tcp://10.0.0.1:6379     # or unix:///PATH
    user: lab                          # of Redis' ACL; with password_file
    password_file: lab.password
    token_file: lab.token              # the agents' token
    ray_token_file: lab.ray-token      # the validator's Ray; that is its name if it is not given

The same file makes a machine lend its GPUs (`vcuda peer join`); what is for that alone means nothing here.
Paths are relative to the file's folder. It names secrets, so only its owner may read it.
"""
import os
import stat
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import PeersError

PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
DIRECTORY = rf"^(?:unix:///.+|tcp://(?:[^:/\s\[\]]+|\[[0-9a-fA-F:.]+\]):{PORT})$"
MOST_BYTES = 1 << 16
Text = Annotated[str, Field(min_length=1, description="a text")]


class Network(BaseModel):
    """A description says what a value has to be."""
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: str = Field(pattern="^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
                      description="1 to 63 of a-z, 0-9 and '-'")
    directory: str = Field(pattern=DIRECTORY, description="unix:///PATH or tcp://HOST:PORT")
    token_file: Text
    user: Text = ""
    password_file: Text = ""
    ray_token_file: Text = ""
    address: Any = None  # this and what follows is the worker's: common/network.c reads and checks it
    gpus: Any = None
    memory: Any = None
    sessions: Any = None
    hours: Any = None


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


def _sentence(error):
    """Of the first of pydantic's errors."""
    key = error["loc"][0]
    if error["type"] == "missing":
        return f"{key} is missing"
    if error["type"] == "extra_forbidden":
        return f"unknown key '{key}'; known are {', '.join(Network.model_fields)}"
    return f"{key} is not {Network.model_fields[key].description}: '{error['input']}'"


def read(path):
    """The network of that file, with absolute paths; PeersError."""
    try:
        with open(path, "rb") as file:
            check_private(path, os.fstat(file.fileno()).st_mode)  # not of one that took its name since
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise PeersError(f"{path}: longer than {MOST_BYTES} bytes")
        said = yaml.safe_load(raw)
        if not isinstance(said, dict):
            raise PeersError(f"{path}: it has no keys; needed are name, directory, token_file")
        network = Network(**{str(key): value for key, value in said.items()})
    except OSError as error:
        raise PeersError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise PeersError(f"{path}: {_sentence(error.errors()[0])}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise PeersError(f"{path}{f':{mark.line + 1}' if mark else ''}: it is no YAML") from None
    if network.user and not network.password_file:
        raise PeersError(f"{path}: user wants a password_file")
    folder, files = os.path.dirname(os.path.abspath(path)), {"ray_token_file": network.name + ".ray-token"}
    files |= {key: value for key, value in network if key.endswith("_file") and value}
    return network.model_copy(update={key: os.path.join(folder, name) for key, name in files.items()})
