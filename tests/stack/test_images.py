# SPDX-License-Identifier: Apache-2.0
"""The cache of images: who loads what another pod of its tenant has loaded sends nothing of it, another
tenant does, and what lies on the disk is believed only if it is what it is called."""
import glob
import os
import re
import subprocess
import sys

from stack import Agent, Sidecar, environment, folder, kill, preloaded, wait_for

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "module.py")
IMAGE = 2 << 20  # bytes, of which most is a comment: it is not worth compressing and not all one byte
LITTLE = 256 << 10  # what a program sends besides
KERNEL = """
.version 7.0
.target sm_52
.address_size 64
.visible .entry twice(.param .u64 at)
{
	.reg .u64 %p;
	.reg .u32 %v;
	ld.param.u64 %p, [at];
	ld.global.u32 %v, [%p];
	add.u32 %v, %v, %v;
	st.global.u32 [%p], %v;
	ret;
}
"""


class Images:
    """An agent with the tenants blue and red, and an image in a file."""

    def __init__(self, path, *flags, cache=None, size=IMAGE):
        os.makedirs(path, exist_ok=True)
        self.path, self.count = path, 0
        self.cache = cache or os.path.join(path, "cache")
        self.image = os.path.join(path, "image.ptx")
        with open(self.image, "w") as file:
            file.write(KERNEL)
            while file.tell() < size:
                file.write(f"// {os.urandom(32).hex()}\n")
            file.write("\0")
        self.tokens = os.path.join(path, "tokens")
        with open(self.tokens, "w") as file:
            file.write("token-of-blue blue\ntoken-of-red red\n")
        os.chmod(self.tokens, 0o400)
        self.flags = ("--token-file", self.tokens, "--cache-dir", self.cache, *flags)
        self.agent = Agent(path, *self.flags)

    def load(self, tenant="blue", *arguments):
        """A program in a pod of its own; the bytes that its session brought."""
        self.count += 1
        place = os.path.join(self.path, f"pod-{self.count}")
        os.makedirs(place)
        token = os.path.join(place, "token")
        with open(token, "w") as file:
            file.write(f"token-of-{tenant}\n")
        os.chmod(token, 0o400)
        sidecar = Sidecar(place, self.agent, "--token-file", token, "--pod", f"{tenant}/pod-{self.count}")
        before = self.received()
        got = subprocess.run([sys.executable, PROGRAM, self.image, *arguments], capture_output=True, text=True, timeout=60,
                             env=environment({"LD_PRELOAD": preloaded(), "VCUDA_SOCKET": sidecar.socket}))
        assert (got.returncode, got.stdout) == (0, "42\n"), got
        wait_for(lambda: not self.agent.sessions(), 30, "its session is over")
        return self.received() - before

    def received(self):
        return self.metric('vcuda_agent_bytes_total{direction="received"}')

    def metric(self, name):
        return int(re.search(rf"^{re.escape(name)} (\d+)$", self.agent.http("/metrics"), re.M)[1])

    def images(self, result, count, kind="images"):
        """Waits until so many came to that."""
        name = f'vcuda_agent_{kind}_total{{result="{result}"}}'
        wait_for(lambda: self.metric(name) == count, 30, f"{name} {count}: {self.metric(name)}")

    def files(self):
        return [name for name in glob.glob(os.path.join(self.cache, "**"), recursive=True) if os.path.isfile(name)]


def test_a_second_pod_sends_nothing_of_what_the_first_one_sent():
    with folder() as path:
        i = Images(path)
        assert i.load() > IMAGE
        i.images("miss", 1)
        i.images("kept", 1)
        i.images("kept", os.path.getsize(i.image), "image_bytes")
        second = i.load()
        assert second < LITTLE, second
        kill(i.agent.front())  # the next one reads the same folder
        wait_for(lambda: i.agent.front(), 30, "another front")
        third = i.load()
        assert abs(third - second) < 4096, (second, third)
        i.images("hit", 2)
        # Another agent, and another one beside it, in the same folder.
        other = Images(os.path.join(path, "other"), cache=i.cache)
        other.image = i.image
        assert other.load() < LITTLE
        assert i.load() < LITTLE
        i.images("hit", 3)


def test_tenants_have_images_of_their_own_unless_they_are_shared():
    with folder() as path:
        i = Images(path)
        assert i.load("blue") > IMAGE
        i.images("kept", 1)
        assert i.load("red") > IMAGE
        i.images("kept", 2)
        assert len(i.files()) == 2
        assert i.load("red") < LITTLE and i.load("blue") < LITTLE
    with folder() as path:
        i = Images(path, "--set", "cache.shared=all")
        assert i.load("blue") > IMAGE
        i.images("kept", 1)
        assert i.load("red") < LITTLE
        assert len(i.files()) == 1


def test_a_program_loads_more_images_than_a_worker_may_have_files():
    with folder() as path:
        i = Images(path, size=LITTLE // 64)
        i.load()
        i.images("kept", 1)
        i.load("blue", "1200")
        i.images("hit", 1201)


def test_a_file_that_was_changed_or_cut_is_sent_anew():
    with folder() as path:
        i = Images(path)
        i.load()
        i.images("kept", 1)
        for spoil in (lambda file: os.truncate(file, 1000), flip):
            file, = i.files()
            spoil(file)
            kept = i.metric('vcuda_agent_images_total{result="kept"}')
            assert i.load() > IMAGE
            i.images("kept", kept + 1)
            assert "event=cache.drop" in i.agent.log()
            assert i.load() < LITTLE


def flip(path):
    with open(path, "r+b") as file:
        file.seek(IMAGE // 2)
        byte = file.read(1)
        file.seek(IMAGE // 2)
        file.write(bytes([byte[0] ^ 1]))


def test_without_a_folder_that_can_be_written_programs_are_right():
    with folder() as path:
        cache = os.path.join(path, "cache")
        with open(cache, "w"):
            pass
        i = Images(path, cache=cache)
        for n in range(2):
            assert i.load() > IMAGE
            i.images("dropped", n + 1)
        i.images("hit", 0)
        assert "event=cache.write" in i.agent.log()
