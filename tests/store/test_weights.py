# SPDX-License-Identifier: Apache-2.0
"""Weights that several programs share (python/vcuda/weights.py)."""
import json
import os
import struct
import subprocess

from stack import BIN, environment, kill
from tensors import MIB, folder, tensors, wait_for


def safetensors(path, parts, change=0):
    """{name: (dtype, shape, bytes)}"""
    told, data = {}, b""
    for name, (dtype, shape, content) in parts.items():
        told[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(told).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data[:len(data) - change] + b"\xff" * change)
    return len(data)


def sent(agent):
    return sum(s["copies_in_bytes"] for s in agent.sessions())


def test_the_first_one_uploads_and_the_others_map():
    with folder() as path, tensors() as s:
        file = os.path.join(path, "m.safetensors")
        size = safetensors(file, {"a": ("F32", [256, 1024], bytes(range(256)) * 4096), "b": ("BF16", [3], b"abcdef"),
                                  "none": ("F32", [0, 3], b""), "c": ("F8_E4M3", [2 * MIB], b"\x07" * 2 * MIB)})
        load = f"from vcuda import weights; w, parts = weights.open_file({file!r})"
        first = s.program()
        first(load)
        assert first("w.made, w.nbytes - weights.IDENTITY_BYTES") == (True, size)
        others = [s.program() for _ in range(3)]
        for one in others:
            one(load)
            assert one("w.made, w.writable") == (False, False)
            assert one(f"p = weights.load_parts({file!r})") is None
            assert one("p['b'].shape, p['b'].dtype, download(p['b'])") == ((3,), "bf16", b"abcdef")
            assert one("p['none'].shape, p['none'].nbytes") == ((0, 3), 0)
            assert one("every(p['c']), download(p['a'])[:256] == bytes(range(256))") == (7, True)
        # What is told of copies comes once a second, by the workers.
        wait_for(lambda: sent(s.agent) >= size, 30, "the upload was counted")
        assert sent(s.agent) < 1.01 * size
        assert first("len(vcuda.names('weights.'))") == 1


def test_other_content_is_another_name():
    with folder() as path, tensors() as s:
        one = s.program()
        names = set()
        for change in (0, 1, 8):
            file = os.path.join(path, f"{change}.safetensors")
            safetensors(file, {"a": ("U8", [1 << 20], bytes(1 << 20))}, change)
            names.add(one(f"__import__('vcuda.weights').weights.name_of({file!r})"))
        assert len(names) == 3


def test_a_name_that_was_told_is_of_one_file():
    with folder() as path, tensors() as s:
        one, two, other = (os.path.join(path, name + ".safetensors") for name in ("one", "two", "other"))
        for file, name, byte in ((one, "a", b"\1"), (two, "a", b"\2"), (other, "b", b"\1")):
            safetensors(file, {name: ("U8", [MIB], byte * MIB)})
        first, second = s.program(), s.program()
        first(f"from vcuda import weights; w, parts = weights.open_file({one!r}, name='mine')")
        second("from vcuda import weights")
        for file in two, other:
            second.fails(f"weights.open_file({file!r}, name='mine')", 1, "'mine' is there already, and was not made of this file")
            got = weights(s, "push", "--name", "mine", file)
            assert got.returncode == 1 and "was not made of this file" in got.stderr and "Traceback" not in got.stderr, got
        second(f"w, parts = weights.open_file({one!r}, name='mine')")
        assert second("w.made, every(weights.Part(w, 'a', *parts['a']))") == (False, 1)
        # One that no file made.
        first("other = vcuda.create('other', 'u8', (1 << 20,)); other.seal()")
        second.fails(f"weights.open_file({one!r}, name='other')", 1, "was not made of this file")


def test_a_tensor_that_is_not_aligned_in_its_file_is_in_memory():
    """The order of a safetensors file is its writer's: an element may begin anywhere."""
    with folder() as path, tensors() as s:
        file = os.path.join(path, "m.safetensors")
        sizes = {"U8": 1, "F64": 8, "F32": 4, "BF16": 2, "I64": 8, "F16": 2}
        content = {f"{kind}{i}": (kind, [n], bytes((7 * i + j) % 251 for j in range(n * sizes[kind])))
                   for i, (kind, n) in enumerate((("U8", 3), ("F64", 500), ("F32", 1001), ("U8", 1), ("BF16", 77), ("F32", 0), ("I64", 2),
                                                  ("F16", 5000), ("U8", 5), ("F64", 1)))}
        safetensors(file, content)
        first, second = s.program(), s.program()
        for one, made in ((first, True), (second, False)):
            one(f"from vcuda import weights; parts = weights.load_parts({file!r})")
            assert one("parts['F64' + '1'].whole.made") is made
            for name, (kind, shape, data) in content.items():
                assert one(f"parts[{name!r}].shape") == tuple(shape)
                if data:
                    assert one(f"parts[{name!r}].__dlpack_device__()[0], parts[{name!r}].data % {sizes[kind]}") == (2, 0), name
                    assert one(f"download(parts[{name!r}])") == data, name


def test_a_loader_that_dies_is_replaced_by_one_that_waits():
    with folder() as path, tensors() as s:
        file = os.path.join(path, "m.safetensors")
        safetensors(file, {"a": ("U8", [1 << 20], b"\x05" * (1 << 20))})
        dies, waits = s.program(), s.program()
        dies(f"from vcuda import weights; w = vcuda.create(weights.name_of({file!r}), 'u8', ((1 << 20) + weights.IDENTITY_BYTES,))")
        waits.send(f"from vcuda import weights; w, parts = weights.open_file({file!r})")
        kill(dies.pid)
        waits.answer(60)
        assert waits("w.made, every(weights.Part(w, 'a', *parts['a']))") == (True, 5)


def test_files_that_are_none():
    with folder() as path, tensors() as s:
        one = s.program()
        file = os.path.join(path, "m.safetensors")
        one("from vcuda import weights")
        good = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
        for text, data in ((b"", b""), (b"{", b"abcd"), (b"[]", b"abcd"), (b"{}", b""),
                           *((json.dumps({"a": dict(good, **bad)}).encode(), b"abcd") for bad in (
                               {"dtype": "U9"}, {"shape": [5]}, {"shape": [-4]}, {"shape": "4"}, {"shape": [1] * 9},
                               {"data_offsets": [0, 5]}, {"data_offsets": [-1, 3]}, {"data_offsets": [4]}, {"data_offsets": [0.0, 4.0]}, {"shape": {"4": 1}}, {"shape": [True, 4]},
                               {"shape": [3], "data_offsets": [0, 3]}, {"shape": [3], "data_offsets": [1, 4]})),
                           *((json.dumps({"a": dict(good, shape=[2], data_offsets=[0, 2]), "b": b}).encode(), b"abcd") for b in (
                               dict(good, shape=[2], data_offsets=[1, 3]), dict(good, shape=[1], data_offsets=[3, 4])))):
            with open(file, "wb") as out:
                out.write(struct.pack("<Q", len(text)) + text + data)
            one.fails(f"weights.open_file({file!r})", 1, "m.safetensors")
        with open(file, "wb") as out:
            out.write(struct.pack("<Q", 1 << 62) + b"{}")
        one.fails(f"weights.open_file({file!r})", 1, "length of its header")
        index = os.path.join(path, "model.safetensors.index.json")
        for text in ("{", "[]", "{}", '{"weight_map": 1}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "../a"}}'):
            with open(index, "w") as out:
                out.write(text)
            one.fails(f"weights.files_of({path!r})", 1, "model.safetensors.index.json")
        assert one("vcuda.names()") == []


def weights(s, *words):
    return subprocess.run([os.path.join(BIN, "vcuda"), "weights", *words], capture_output=True, text=True, timeout=60,
                          env=environment({"VCUDA_SOCKET": s.sidecar.socket}))


def test_the_command_pushes_lists_and_removes():
    with folder() as path, tensors() as s:
        model = os.path.join(path, "model")
        os.mkdir(model)
        for name, byte in (("a", b"\1"), ("b", b"\2")):
            safetensors(os.path.join(model, name + ".safetensors"), {name: ("U8", [MIB], byte * MIB)})
        got = weights(s, "push", model)
        assert got.returncode == 0 and got.stdout.count("loaded weights.") == 2, got
        assert weights(s, "push", model).stdout.count("there   weights.") == 2
        # What was pushed is what a program finds, and nobody holds it meanwhile.
        one = s.program()
        one("from vcuda import weights")
        one(f"w, parts = weights.open_file({model!r} + '/b.safetensors')")
        assert one("w.made, every(weights.Part(w, 'b', *parts['b']))") == (False, 2)
        got = weights(s, "push", "--name", "mine", "--keep", os.path.join(model, "a.safetensors"))
        assert got.returncode == 0, got
        lines = weights(s, "ls", "").stdout.splitlines()
        assert len(lines) == 4 and lines[3].split() == ["sealed", "1.0", "0", "default/mine"], lines
        assert weights(s, "rm", "mine").returncode == 0
        gone = weights(s, "rm", "mine")
        assert gone.returncode == 1 and "there is no tensor 'default/mine'" in gone.stderr, gone
        assert len(weights(s, "ls").stdout.splitlines()) == 3
        for words, text in ((("push", "/nowhere"), "/nowhere"), (("pull",), "is not push, ls or rm"),
                            (("push", "--name", "x", model), "--name is for one file")):
            got = weights(s, *words)
            assert got.returncode and text in got.stderr and "Traceback" not in got.stderr, got
        one.end()
