# SPDX-License-Identifier: Apache-2.0
"""vcuda-client install: what an init container leaves in the volume of a pod."""
import os
import stat
import subprocess

from stack import BIN, LIB, environment, folder, one_line

CLIENT = os.path.join(BIN, "vcuda-client")


def install(*words):
    got = subprocess.run([CLIENT, "install", *words], capture_output=True, text=True, timeout=20,
                         env=environment())
    assert got.returncode == 0, got.stderr
    return got.stdout


def read(*words):
    with open(os.path.join(*words)) as file:
        return file.read()


def test_copies_everything_whole_and_writes_the_line():
    with folder() as path:
        source, target = os.path.join(path, "from"), os.path.join(path, "to")
        os.makedirs(os.path.join(source, "driver", "deeper"))
        with open(os.path.join(source, "driver", "libone.so"), "w") as file:
            file.write("without a number")
        os.chmod(os.path.join(source, "driver"), 0o700)
        with open(os.path.join(source, "preload.list"), "w") as file:
            file.write("libone.so\nlibtwo.so\n")
        with open(os.path.join(source, "libone.so"), "wb") as file:
            file.write(os.urandom(300000))
        os.chmod(os.path.join(source, "libone.so"), 0o700)
        os.symlink("libone.so", os.path.join(source, "libone.so.1"))
        assert "4 files" in install(source, target)
        assert sorted(os.listdir(target)) == ["driver", "ld.so.preload", "libone.so", "libone.so.1", "preload",
                                              "preload.list"]
        assert os.listdir(os.path.join(target, "driver")) == ["libone.so"]
        assert stat.S_IMODE(os.stat(os.path.join(target, "driver")).st_mode) == 0o755
        assert read(target, "driver", "libone.so") == "without a number"
        for name in ("libone.so", "libone.so.1"):
            with open(os.path.join(source, name), "rb") as a, open(os.path.join(target, name), "rb") as b:
                assert a.read() == b.read()
        # For users of every container, whatever the umask and the source said.
        assert stat.S_IMODE(os.stat(os.path.join(target, "libone.so")).st_mode) == 0o755
        assert os.readlink(os.path.join(target, "libone.so.1")) == "libone.so"
        assert read(target, "preload") == "/lib/vcuda/libone.so:/lib/vcuda/libtwo.so\n"
        assert read(target, "ld.so.preload") == read(target, "preload")

        # Again, beside a program that has the old file open: that one keeps what it had.
        with open(os.path.join(target, "libone.so"), "rb") as held:
            before = os.fstat(held.fileno()).st_ino
            with open(os.path.join(target, ".libone.so.new"), "w") as left:
                left.write("of one that was killed")
            install(source, target, "/lib/vcuda/libone.so")
            assert os.stat(os.path.join(target, "libone.so")).st_ino != before
            assert len(held.read()) == 300000
        assert read(target, "ld.so.preload") == "/lib/vcuda/libone.so\n"
        assert not [name for name in os.listdir(target) if name.endswith(".new")]


def test_what_the_build_lists_is_what_a_pod_preloads():
    with folder() as path:
        install(LIB, path)
        got = subprocess.run([os.path.join(BIN, "vcuda"), "preload"], capture_output=True, text=True,
                             timeout=10, env=environment())
        assert read(path, "preload") == got.stdout.replace(LIB, "/lib/vcuda")


def test_bad_folders_are_named():
    with folder() as path:
        one_line([CLIENT, "install", "/nowhere", path], "/nowhere", "No such file", status=1)
        one_line([CLIENT, "install", path, "/proc/nothing"], "/proc/nothing", status=1)
