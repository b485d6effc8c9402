#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever way a program names a library of NVIDIA's, it gets ours, once.

For every name that we stand for: a program that needs it, with an RPATH to the original; dlopen by
name and by the original's path, and by a library that was itself opened with RTLD_DEEPBIND; the libraries
copied as *.so, as the seed's init container does it, and copied with every link turned into a file.

    tests/shim/names.py [LIBRARY_DIR]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIB = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "lib"))

# Says which file a function comes from: linked, and after dlopen of each argument.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#ifdef NAME
extern char NAME[];
#endif
static const char *file(void *address)
{
	Dl_info info = {0};
	const char *slash;

	if (!address || !dladdr(address, &info))
		return "nothing";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}
int main(int argc, char **argv)
{
	char line[4096];
	FILE *maps;

#ifdef NAME
	printf("linked %s\n", file(NAME));
#endif
	for (int i = 1; i + 1 < argc; i += 2) {
		void *handle = dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL);

		printf("%s %s\n", argv[i], handle ? file(dlsym(handle, argv[i + 1])) : dlerror());
	}
	maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (strchr(line, '/') && strstr(line, "r-xp"))
			printf("code %s", strchr(line, '/'));
	}
	return 0;
}
"""


DEEP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
const char *vcuda_test_opened(void);
const char *vcuda_test_opened(void)
{
	Dl_info info;
	void *handle = dlopen("libcuda.so", RTLD_LAZY), *found = handle ? dlsym(handle, "cuInit") : 0;

	return !handle ? dlerror() : found && dladdr(found, &info) ? strrchr(info.dli_fname, '/') + 1 : "nothing";
}
"""


# A library with a function or a variable of its own for each of NVIDIA's, which it finds itself, and one that needs it,
# which calls them without a version: TensorFlow's, slang-rhi's.
DOUBLE = r"""
#include <dlfcn.h>
int (*cuInit)(unsigned);
long cudnnGetVersion(void);
long cudnnGetVersion(void)
{
	void *handle = dlopen("libcudnn.so.9", RTLD_LAZY);
	long (*real)(void) = handle ? (long (*)(void))dlsym(handle, "cudnnGetVersion") : 0;
	return real ? real() / 10000 * 1000 : -1;
}
int vcuda_test_variable(void);
int vcuda_test_variable(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY);
	cuInit = (int (*)(unsigned))dlsym(handle, "cuInit");
	return cuInit != 0;
}
long vcuda_test_own(void);
long vcuda_test_own(void) { return cudnnGetVersion(); }
"""
NEEDING = r"""
long cudnnGetVersion(void);
long vcuda_test_needed(void);
long vcuda_test_needed(void) { return cudnnGetVersion(); }
"""


# A library that is linked with no runtime, and asks whose function it got.
UNSAID = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
int cudaGetDeviceProperties(void *, int);
int vcuda_test_which(void);
int vcuda_test_which(void)
{
	Dl_info info;

	return dladdr((void *)cudaGetDeviceProperties, &info) ? info.dli_saddr == dlvsym(RTLD_DEFAULT,
		"cudaGetDeviceProperties", "libcudart.so.12") ? 12 : 13 : 0;
}
"""


def output(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True,
                          **more).stdout


# A function of each library that has no version nodes, or nothing of its own behind its name.
BARE = {"libcudnn_cnn_infer.so.8": "cudnnCreate", "libcuda.so.1": "cuInit",
        "libnvidia-ml.so.1": "nvmlInit_v2", "libnccl.so.2": "ncclSend",
        "libcufile.so.0": "cuFileRead", "libcusparseLt.so.0": "cusparseLtInit"}


# Opened by programs, but nothing is linked with it.
HOLLOW = {"libcudnn_cnn_infer.so.8"}


def held():
    """{SONAME: (the library behind it, its version node or "", one of its functions)}"""
    found = {}
    for file in sorted(os.listdir(LIB)):
        if not re.match(r"lib.*\.so", file) or re.search("softgpu|libutilities", file):
            continue
        dynamic = output("readelf", "-dW", f"{LIB}/{file}")
        soname, = re.findall(r"soname: \[(.*)\]", dynamic)
        behind = re.search(r"NEEDED.*\[(?:\$ORIGIN/)?(libvcuda-(?:\d+|cuda|nvml)\.so)\]", dynamic)
        if not behind or soname.startswith("libvcuda") or soname in found:
            continue
        # GNU ld gives the file's own name first, then the nodes.
        nodes = re.findall(r"Name: (\S+)", output("readelf", "-VW", f"{LIB}/{file}"))[1:]
        function = BARE.get(soname)
        for line in output("nm", "-D", "--defined-only", f"{LIB}/{behind[1]}").splitlines():
            if nodes and line.endswith(f"@@{nodes[0]}") and line.split()[1] == "T":
                function = line.split()[2].partition("@")[0]
                break
        if not function:
            sys.exit(f"{soname}: {behind[1]} has no function of version {nodes}")
        found[soname] = behind[1], (nodes or [""])[0], function
    return found


def compile_(path, text, *flags):
    subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", path, *flags], input=text, text=True, check=True,
                   timeout=60)


class Names:
    def __init__(self, folder):
        self.folder = folder
        self.names = held()
        self.passed = self.failed = 0
        self.originals = os.path.join(folder, "originals")
        os.mkdir(self.originals)
        compile_(f"{folder}/opens", PROGRAM, "-ldl")
        for soname, (_, node, function) in self.names.items():
            with open(f"{folder}/map", "w", encoding="utf-8") as file:
                file.write(f"{node} {{ global: *; }};\n")
            compile_(f"{self.originals}/{soname}", f"int {function}(void) {{ return 0; }}",
                     "-shared", "-fPIC", f"-Wl,-soname,{soname}",
                     f"-Wl,--version-script={folder}/map")
            if soname in HOLLOW:
                continue
            compile_(f"{folder}/needs-{soname}", PROGRAM, f"-DNAME={function}",
                     "-Wl,--disable-new-dtags", f"-Wl,-rpath,{self.originals}", "-fPIC", "-pie",
                     f"{self.originals}/{soname}", "-ldl")
            compile_(f"{folder}/plugin-{soname}.so",
                     f"extern char {function}[]; void *vcuda_test_address(void);"
                     f"void *vcuda_test_address(void) {{ return {function}; }}",
                     "-shared", "-fPIC", f"-Wl,-rpath,{self.originals}",
                     f"{self.originals}/{soname}")

    def verdict(self, what, right, text=""):
        self.passed += right
        self.failed += not right
        if not right:
            print(f"FAILED  {what}: {text}")

    def run(self, preload, *command, **env):
        got = subprocess.run(command, capture_output=True, text=True, timeout=60,
                             env={"PATH": os.environ["PATH"], "LD_PRELOAD": preload, **env})
        return got.stdout, got.stderr

    def once(self, what, text):
        """Every library of ours is there once, whatever it was asked for by."""
        files = [line[5:] for line in text.splitlines() if line.startswith("code ")]
        ours = [os.path.basename(f) for f in files if "vcuda" in os.path.basename(f)]
        doubles = {f for f in ours if ours.count(f) > 1}
        strange = [f for f in files if f.startswith(self.originals)]
        self.verdict(f"{what}: one of each", not doubles and not strange,
                     f"{sorted(doubles)} {strange}")

    def opened(self, what, preload, asked, **env):
        """ASKED: {what to open: SONAME}"""
        words = [w for a, s in asked.items() for w in (a, self.names[s][2])]
        out, err = self.run(preload, f"{self.folder}/opens", *words, **env)
        for a, s in asked.items():
            self.verdict(f"{what} {a}", f"{a} {self.names[s][0]}\n" in out, out + err)
        self.once(what, out)

    def deep(self, what, preload):
        """A library that is opened with RTLD_DEEPBIND (Taichi's) finds the C library's dlopen before the guard's."""
        code = ("import ctypes, os, sys\n"
                "library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_DEEPBIND)\n"
                "library.vcuda_test_opened.restype = ctypes.c_char_p\n"
                "print('opened', library.vcuda_test_opened().decode())")
        for binding in ("lazy", "now"):
            compile_(f"{self.folder}/deep-{binding}.so", DEEP, "-shared", "-fPIC", f"-Wl,-z,{binding}", "-ldl")
            out, err = self.run(preload, sys.executable, "-c", code, f"{self.folder}/deep-{binding}.so")
            self.verdict(f"{what}: RTLD_DEEPBIND, {binding}", out == "opened libvcuda-cuda.so\n" and not err, out + err)

    def doubles(self, what, preload):
        """A library's own functions and variables with names of NVIDIA's are its own, and what it opens is ours."""
        code = ("import ctypes, sys\n"
                "needing, double = map(ctypes.CDLL, sys.argv[1:])\n"
                "print(double.vcuda_test_variable(), double.vcuda_test_own(), needing.vcuda_test_needed())")
        for binding in ("lazy", "now"):
            double, needing = (f"{self.folder}/{name}-{binding}.so" for name in ("double", "needing"))
            compile_(double, DOUBLE, "-shared", "-fPIC", f"-Wl,-z,{binding}", f"-Wl,-soname,double-{binding}.so", "-ldl")
            compile_(needing, NEEDING, "-shared", "-fPIC", f"-Wl,-z,{binding}", "-Wl,-rpath,$ORIGIN", double)
            out, err = self.run(preload, sys.executable, "-c", code, needing, double)
            self.verdict(f"{what}: doubles, {binding}", out == "1 9000 9000\n" and not err, out + err)

    def unsaid(self, what, preload):
        """A library without a runtime of its own calls the one that is needed by who opens it: structures differ."""
        compile_(f"{self.folder}/libunsaid.so", UNSAID, "-shared", "-fPIC", "-Wl,-soname,libunsaid.so", "-ldl")
        code = "import ctypes, sys\nprint(ctypes.CDLL(sys.argv[1]).vcuda_test_which())"
        for major in ("12", "13"):
            saying = f"{self.folder}/saying-{major}.so"
            compile_(saying, "", "-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN:$ORIGIN/originals",
                     f"{self.folder}/libunsaid.so", f"{self.originals}/libcudart.so.{major}")
            out, err = self.run(preload, sys.executable, "-c", code, saying)
            self.verdict(f"{what}: a runtime that is not said, {major}", out == f"{major}\n" and not err, out + err)

    def needed(self, what, preload):
        for soname, (library, _, _) in self.names.items():
            if soname in HOLLOW:
                continue
            out, err = self.run(preload, f"{self.folder}/needs-{soname}")
            self.verdict(f"{what} needs {soname}", f"linked {library}\n" in out and not err,
                         out + err)
            self.once(f"{what} needs {soname}", out)

    def plugins(self, what, preload):
        """Libraries that a program opens and that need ours, with an RPATH to the originals."""
        code = ("import ctypes, sys\nfor path in sys.argv[1:]:\n"
                " f = ctypes.CDLL(path).vcuda_test_address\n f.restype = ctypes.c_void_p\n f()\n"
                "print(''.join('code ' + l[l.index('/'):] for l in open('/proc/self/maps')"
                " if '/' in l and 'r-xp' in l))")
        out, err = self.run(preload, sys.executable, "-c", code, *[
            f"{self.folder}/plugin-{s}.so" for s in self.names if s not in HOLLOW])
        self.verdict(f"{what}: plugins", "code" in out and not err, err)
        self.once(f"{what}: plugins", out)


def main():
    with open(f"{LIB}/preload.list", encoding="utf-8") as file:
        every = [line.strip() for line in file]
    with tempfile.TemporaryDirectory(prefix="vcuda-names-") as folder:
        names = Names(folder)
        sonames = {s: s for s in names.names}
        paths = {f"{names.originals}/{s}": s for s in names.names}

        preload = ":".join(f"{LIB}/{f}" for f in every)
        names.needed("vcuda preload", preload)
        names.plugins("vcuda preload", preload)
        names.deep("vcuda preload", preload)
        names.doubles("vcuda preload", preload)
        names.unsaid("vcuda preload", preload)
        unnumbered = {s.partition(".so")[0] + ".so": s for s in ("libcuda.so.1", "libnvidia-ml.so.1", "libnccl.so.2")}
        names.opened("vcuda preload, dlopen", preload, unnumbered)
        names.opened("vcuda preload, dlopen", preload, sonames)
        names.opened("vcuda preload, dlopen", preload, paths)

        # As the toolkit has them for the linker, in a folder that is looked into.
        linked = os.path.join(folder, "linked")
        os.mkdir(linked)
        toolkit = {s.partition(".so")[0] + ".so": s for s in ("libcudart.so.12", "libcublas.so.13", "libcusolver.so.12", "libcurand.so.10")}
        for link, s in toolkit.items():
            os.symlink(f"{names.originals}/{s}", f"{linked}/{link}")
        names.opened("vcuda preload, dlopen of links", preload, toolkit, LD_LIBRARY_PATH=linked)

        seeds = os.path.join(folder, "seeds")
        os.mkdir(seeds)
        subprocess.run(f"cp {LIB}/*.so {seeds}/ && cp {LIB}/libcuda.so.1 {seeds}/", shell=True,
                       check=True)
        two = f"{seeds}/libutilities.so:{seeds}/libvcuda.so"
        names.plugins("copies and two names", two)
        names.opened("copies and two names, dlopen", two, sonames)
        names.opened("copies and two names, dlopen", two, paths)
        names.deep("copies and two names", two)
        names.doubles("copies and two names", two)
        names.unsaid("copies and two names", two)
        # As the seed's pod does it, for what looks for a driver there.
        known = os.path.join(folder, "nvidia")
        os.mkdir(known)
        shutil.copy(f"{seeds}/libcuda.so.1", known)
        names.opened("a copy of libcuda.so.1", two, {f"{known}/libcuda.so.1": "libcuda.so.1"})

        files = os.path.join(folder, "files")
        shutil.copytree(LIB, files)
        asked = {**sonames, **{f"{files}/{s}": s for s in names.names}}
        names.opened("files for links, LD_LIBRARY_PATH", "", asked, LD_LIBRARY_PATH=files)
        print(f"{len(names.names)} names: {names.passed} passed, {names.failed} failed")
        return names.failed > 0 or not names.passed


if __name__ == "__main__":
    sys.exit(main())
