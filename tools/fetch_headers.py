# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's headers of the libraries that we describe, and the names that the libraries export, into
CACHE/FOLDER: what tests/parity compares protocol/api with, and what tests/cusolver includes.

    CACHE/venv/bin/python tools/fetch_headers.py CACHE        (tools/install-deps.sh does)

The wheels have hundreds of megabytes.  pip reads parts of an archive (as it does for metadata), so
that the headers and one library are all that is fetched; from an index that gives no parts, all is.
"""
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# folder: (package, version, the library whose names are kept or None)
FOLDERS = {
    "cublas-12": ("nvidia-cublas-cu12", "12.9.3.13", "libcublas.so.12"),
    "cublas-13": ("nvidia-cublas", "13.10.0.20", "libcublas.so.13"),
    "cusolver-11": ("nvidia-cusolver-cu12", "11.7.5.82", "libcusolver.so.11"),
    "cusolver-12": ("nvidia-cusolver", "12.4.1.2", "libcusolver.so.12"),
    "cusparse-12.5": ("nvidia-cusparse-cu12", "12.5.10.65", "libcusparse.so.12"),
    "cusparse-12.9": ("nvidia-cusparse", "12.9.4.2", "libcusparse.so.12"),
    "cusparselt-cu12": ("nvidia-cusparselt-cu12", "0.8.1", "libcusparseLt.so.0"),
    "cusparselt-cu13": ("nvidia-cusparselt-cu13", "0.10.0", "libcusparseLt.so.0"),
    "cudnn-8": ("nvidia-cudnn-cu12", "8.9.7.29", "libcudnn.so.8"),
    "cudnn-9": ("nvidia-cudnn-cu13", "9.28.1.4", "libcudnn.so.9"),
    "cufft-11": ("nvidia-cufft-cu12", "11.4.1.4", "libcufft.so.11"),
    "cufft-12": ("nvidia-cufft", "12.5.0.14", "libcufft.so.12"),
    "cupti-12": ("nvidia-cuda-cupti-cu12", "12.9.79", "libcupti.so.12"),
    "cupti-13": ("nvidia-cuda-cupti", "13.5.25", "libcupti.so.13"),
    "nccl-cu13": ("nvidia-nccl-cu13", "2.32.3", "libnccl.so.2"),
    "nvml-12": ("nvidia-nvml-dev-cu12", "12.9.79", None),
}
PART = 8 << 20  # bytes of one request


class Pip:
    """The pip that runs us: its index, certificates and retries."""

    def __init__(self):
        from pip._internal.commands import create_command
        self.command = create_command("download")
        self.options, _ = self.command.parse_args(["-q"])

    def archive(self, package, version):
        """The wheel, as a file that is fetched where it is read."""
        from pip._internal.network.lazy_wheel import HTTPRangeRequestUnsupported, LazyZipOverHTTP
        from pip._vendor.packaging.specifiers import SpecifierSet
        session = self.command.get_default_session(self.options)
        finder = self.command._build_package_finder(options=self.options, session=session)
        found = finder.find_best_candidate(package, SpecifierSet(f"=={version}")).best_candidate
        if not found:
            raise RuntimeError(f"the package index has no {package} {version} for this Python")
        try:
            return LazyZipOverHTTP(found.link.url_without_fragment, session, PART)
        except HTTPRangeRequestUnsupported:
            return whole(f"{package}=={version}")


def whole(requirement):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder,
                        requirement], check=True)
        with open(os.path.join(folder, os.listdir(folder)[0]), "rb") as file:
            return io.BytesIO(file.read())


def names(library):
    """What it exports, without versions."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout
    rows = (line.split() for line in out.splitlines())
    return sorted({row[2].split("@")[0] for row in rows if row[1] in "TW"})


def fetch(archive, library, folder):
    for member in archive.infolist():
        file = os.path.basename(member.filename)
        if not file.endswith(".h") and file != library:
            continue
        with archive.open(member) as source, open(os.path.join(folder, file), "wb") as out:
            shutil.copyfileobj(source, out, PART)
    if not library:
        return
    path = os.path.join(folder, library)
    with open(os.path.join(folder, "names"), "w", encoding="utf-8") as out:
        out.writelines(name + "\n" for name in names(path))
    os.unlink(path)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    pip = Pip()
    with pip.command.main_context():
        for folder, (package, version, library) in FOLDERS.items():
            path = os.path.join(sys.argv[1], f"{folder}-{version}")
            if not os.path.exists(path):
                part = f"{path}.part"
                shutil.rmtree(part, ignore_errors=True)
                os.makedirs(part)
                with zipfile.ZipFile(pip.archive(package, version)) as archive:
                    fetch(archive, library, part)
                os.rename(part, path)
            link = os.path.join(sys.argv[1], folder)
            if os.path.isdir(link) and not os.path.islink(link):
                shutil.rmtree(link)  # of an older fetch
            if os.path.islink(link):
                os.unlink(link)
            os.symlink(os.path.basename(path), link)


if __name__ == "__main__":
    main()
