#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python wheel: the commands, what is preloaded and the software GPU, for any glibc from 2.17 on.

    packaging/wheel.py BUILD LIBRARIES OUT

BUILD/old holds the commands and the software GPU, BUILD/lib what is preloaded; LIBRARIES is what
old-libraries.sh made. pip puts the commands into bin/ of the environment, the libraries into lib/vcuda, where
the commands look for them, and the module vcuda where Python does. The same build gives the same file.
"""
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAGS = ("manylinux_2_17_x86_64", "manylinux2014_x86_64")
COMMANDS = ("vcuda", "vcuda-top", "vcuda-client", "gpu-agent")
ABOUT = """\
vcuda runs an unmodified CUDA program on a GPU in another machine, without a GPU, a driver or CUDA's libraries here:

    vcuda run --agent GPU-MACHINE --token-file token -- python train.py

and without any GPU, on this machine's processor:

    vcuda run --software -- python train.py

Everything but cuFFT is served by the software GPU of this package: the library that it needs is under the GPL.
"""


def version():
    with open(f"{ROOT}/common/version.h") as file:
        return re.search(r'VCUDA_VERSION "(.*)"', file.read())[1]


def collected(build, libraries, folder):
    """Copies what is in it to FOLDER, without what only a debugger reads: {path in the wheel: (file, mode)}."""
    data = f"vcuda-{version()}.data"
    found = {f"{data}/scripts/{name}": (f"{build}/old/bin/{name}", 0o755) for name in COMMANDS}
    with open(f"{build}/lib/preload.list") as file:
        preloaded = file.read().split()
    # Links become files of 1.5 KB: a wheel has none.
    names = {*preloaded, "preload.list", *(os.path.basename(path) for path in glob.glob(f"{build}/lib/lib*.so.*"))}
    names |= {os.path.basename(path) for path in glob.glob(f"{build}/lib/libvcuda-*.so") if "softgpu" not in path}
    sources = [f"{build}/lib/{name}" for name in names] + glob.glob(f"{build}/old/lib/libvcuda-softgpu*.so")
    sources += [path for path in glob.glob(f"{libraries}/lib/lib*.so*") if not os.path.islink(path)]
    found.update({f"{data}/data/lib/vcuda/{os.path.basename(path)}": (path, 0o644) for path in sources})
    found.update({f"{data}/data/lib/vcuda/driver/{os.path.basename(path)}": (path, 0o644) for path in glob.glob(f"{build}/lib/driver/*.so")})
    # `import vcuda`, and what `vcuda weights` runs.
    for path in glob.glob(f"{build}/lib/python/vcuda/*.py"):
        name = os.path.basename(path)
        found[f"vcuda/{name}"] = found[f"{data}/data/lib/vcuda/python/vcuda/{name}"] = (path, 0o644)
    for number, (place, (source, mode)) in enumerate(sorted(found.items())):
        copy = f"{folder}/{number}"
        shutil.copyfile(source, copy)
        with open(copy, "rb") as file:
            binary = file.read(4) == b"\x7fELF"
        if binary and not source.startswith(libraries):
            subprocess.run(["strip", "--strip-unneeded", "--remove-section=.comment", copy], check=True, timeout=60)
        found[place] = (copy, mode)
    return found


def metadata(libraries, folder):
    info = f"vcuda-{version()}.dist-info"
    licences = {"vcuda.LICENSE": f"{ROOT}/LICENSE"}
    licences.update({os.path.basename(path): path for path in glob.glob(f"{libraries}/doc/*.LICENSE")})
    texts = {
        "METADATA": "\n".join([
            "Metadata-Version: 2.1", "Name: vcuda", f"Version: {version()}",
            "Summary: CUDA programs on the GPUs of other machines", "Home-page: https://github.com/vcuda/vcuda",
            "License: Apache-2.0", *(f"License-File: licenses/{name}" for name in sorted(licences)),
            "Classifier: Operating System :: POSIX :: Linux", "Requires-Python: >=3.6",
            "Description-Content-Type: text/markdown", "", ABOUT]),
        "WHEEL": "\n".join(["Wheel-Version: 1.0", "Generator: packaging/wheel.py", "Root-Is-Purelib: false",
                            *(f"Tag: py3-none-{tag}" for tag in TAGS), ""]),
    }
    found = {f"{info}/licenses/{name}": (path, 0o644) for name, path in licences.items()}
    for name, text in texts.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
        found[f"{info}/{name}"] = (f"{folder}/{name}", 0o644)
    return found


def write(path, found):
    """A zip file in one order and of one time, with RECORD last."""
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    record = f"vcuda-{version()}.dist-info/RECORD"
    lines = []

    def add(archive, place, data, mode):
        entry = zipfile.ZipInfo(place, moment)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        archive.writestr(entry, data, compresslevel=9)

    with zipfile.ZipFile(path + ".part", "w") as archive:
        # The metadata at the end, as the format recommends.
        for place in sorted(found, key=lambda place: (".dist-info/" in place, place)):
            source, mode = found[place]
            with open(source, "rb") as file:
                data = file.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{place},sha256={digest},{len(data)}")
            add(archive, place, data, mode)
        add(archive, record, "\n".join([*lines, f"{record},,", ""]).encode(), 0o644)
    os.replace(path + ".part", path)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, libraries, out = sys.argv[1:]
    if "SOURCE_DATE_EPOCH" not in os.environ:
        os.environ["SOURCE_DATE_EPOCH"] = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"],
                                                         capture_output=True, text=True, timeout=10).stdout.strip() or "0"
    os.makedirs(out, exist_ok=True)
    for old in glob.glob(f"{out}/*.whl"):
        os.remove(old)
    path = f"{out}/vcuda-{version()}-py3-none-{'.'.join(TAGS)}.whl"
    with tempfile.TemporaryDirectory() as folder:
        write(path, {**collected(build, libraries, folder), **metadata(libraries, folder)})
    with open(path, "rb") as file, open(f"{out}/SHA256SUMS", "w") as sums:
        sums.write(f"{hashlib.sha256(file.read()).hexdigest()}  {os.path.basename(path)}\n")
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
