# SPDX-License-Identifier: Apache-2.0
"""FOLDER/step-N.pt: a model, its optimizer and the step, whole or not there. The two newest are kept."""
import contextlib
import os
import pickle
import re
import warnings
import zipfile

import torch

from .errors import PeersError

NAME = re.compile(r"step-([0-9]{12})\.pt")
KEPT = 2  # one may be broken by the machine's end


def listed(folder):
    """(step, path) of those in FOLDER, the newest first."""
    try:
        os.makedirs(folder, exist_ok=True)
        found = [(int(got[1]), os.path.join(folder, got[0]))
                 for got in map(NAME.fullmatch, os.listdir(folder)) if got]
    except OSError as error:
        raise PeersError(f"the checkpoints' folder {folder}: {error.strerror}") from None
    return sorted(found, reverse=True)


def _sync(path):
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write(folder, step, model, optimizer):
    path, part = os.path.join(folder, f"step-{step:012}.pt"), os.path.join(folder, "next.part")
    try:
        with open(part, "wb") as file:
            torch.save({"step": step, "model": model.state_dict(), "kind": type(optimizer).__name__,
                        "optimizer": optimizer.state_dict() if optimizer else None}, file)
        _sync(part)
        os.rename(part, path)
        _sync(folder)
    except OSError as error:
        raise PeersError(f"the checkpoint {path}: {error.strerror}") from None
    for _, old in listed(folder)[KEPT:]:
        with contextlib.suppress(OSError):
            os.unlink(old)
    return path


def _shapes(state):
    return {name: f"{value.dtype} of {' × '.join(map(str, value.shape))}" for name, value in state.items()
            if isinstance(value, torch.Tensor)}


def _whole(path):
    """What it holds, on the CPU; None where a byte of it is not as written."""
    try:
        with zipfile.ZipFile(path) as file:
            if file.testzip():
                return None
        said = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return said if {"step", "model", "kind", "optimizer"} <= said.keys() else None
    except (OSError, ValueError, RuntimeError, AttributeError, EOFError, pickle.UnpicklingError,
            zipfile.BadZipFile):
        return None


def read(folder, model, optimizer):
    """Brings the newest that is whole into both. (Its step, its path); (0, None) where FOLDER has none."""
    there = listed(folder)
    for step, path in there:
        said = _whole(path)
        if said is None:
            warnings.warn(f"the checkpoint {path} is broken; the one before it is taken", stacklevel=3)
            continue
        theirs, mine = _shapes(said["model"]), _shapes(model.state_dict())
        for name in sorted(theirs.keys() | mine.keys()):
            if theirs.get(name) != mine.get(name):
                raise PeersError(f"{path} is a checkpoint of another model: "
                                 f"'{name}' is {theirs.get(name, 'not there')}, "
                                 f"and here {mine.get(name, 'not there')}")
        if said["kind"] != type(optimizer).__name__:
            raise PeersError(f"{path} is a checkpoint with the optimizer {said['kind']}, "
                             f"and here is {type(optimizer).__name__}")
        model.load_state_dict(said["model"])
        if optimizer:
            optimizer.load_state_dict(said["optimizer"])
        return step, path
    if there:
        raise PeersError(f"none of the checkpoints in {folder} is whole: "
                         f"{', '.join(os.path.basename(p) for _, p in there)}")
    return 0, None
