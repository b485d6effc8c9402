#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The front of an unserved library: assembly with every name that NVIDIA's exports, 12 bytes each,
which says on stderr, once, that there is no front yet, and returns the library's own "not
supported".

    unserved.py symbols SONAME     assembly
    unserved.py map SONAME         its version script

A line of a list (*.txt here) is `library SONAME NODE VERSION`, with - for no version node, or

    NAME [MAJOR] [pointer|value|void]

MAJOR is the only one of its SONAMEs that has the name; then what it returns if it is no status.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = {  # library: status, its name, a `value`, how a version becomes one number
    "libcufft": (16, "CUFFT_NOT_SUPPORTED", -1, (1000, 100, 1)),
    "libcusparse": (10, "CUSPARSE_STATUS_NOT_SUPPORTED", -1, (1000, 100, 1)),
    "libcusparseLt": (10, "CUSPARSE_STATUS_NOT_SUPPORTED", -1, (1000, 100, 1)),
    "libcusolver": (9, "CUSOLVER_STATUS_NOT_SUPPORTED", -1, (1000, 100, 1)),
    "libcusolverMg": (9, "CUSOLVER_STATUS_NOT_SUPPORTED", -1, (1000, 100, 1)),
    "libnccl": (5, "ncclInvalidUsage", -1, (10000, 100, 1)),
    "libnvshmem_host": (3, "NVSHMEMX_ERROR_NOT_SUPPORTED", -1, (1000, 100, 1)),
    # A structure of two: CU_FILE_PLATFORM_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED.
    "libcufile": (801 << 32 | 5007, "CU_FILE_PLATFORM_NOT_SUPPORTED", -5007, (1000, 10, 0)),
}
# What the headers that the lists were made from do not say.
OTHER = [(r"nvshmem_(malloc|calloc|align|ptr)|nvshmemx_mc_ptr|nvshmemx_buffer_register_symmetric",
          "pointer"),
         (r"nvshmemx?_(my_pe|n_pes|team_(my_pe|n_pes|translate_pe))", "value"),
         (r"nvshmem(x|id)_init_status|cuFileUseCount", "pointer")]  # 0: not started, none


def lists():
    """The lines of each list, as words."""
    for path in sorted(glob.glob(os.path.join(HERE, "*.txt"))):
        with open(path, encoding="utf-8") as file:
            yield [line.split() for line in file if not line.startswith("#")]


def sonames():
    return [words[1] for lines in lists() for words in lines if words[0] == "library"]


class Library:
    """What a library exports: its names, and what each returns."""

    def __init__(self, soname):
        self.soname = soname
        self.stem, self.major = soname.split(".so.")
        self.status, self.word, self.value, self.weights = LIBRARIES[self.stem]
        self.names = {}  # name: what it returns
        self.node = self.version = None
        for lines in lists():
            mine = [words for words in lines if words[:2] == ["library", soname]]
            if mine:
                self.node = "" if mine[0][2] == "-" else mine[0][2]
                self.version = [int(n) for n in mine[0][3].split(".")]
                self.read(words for words in lines if words[0] != "library")
        if self.version is None:
            sys.exit(f"{soname} is in no list beside {__file__}")

    def read(self, lines):
        for name, *rest in lines:
            majors = [word for word in rest if word.isdigit()]
            if majors and self.major not in majors:
                continue
            kinds = [word for word in rest if not word.isdigit()] or [
                kind for shape, kind in OTHER if re.fullmatch(shape, name)]
            self.names[name] = kinds[0] if kinds else "status"

    def number(self):
        return sum(n * weight for n, weight in zip(self.version, self.weights))

    def known(self, name):
        """The code of a function that has an answer, or None."""
        major, minor, patch = self.version
        if name.endswith("GetProperty"):
            return (f"cmpl $2, %edi\n\tja {self.tail('status')}\n\tleaq .Lversion(%rip), %rax\n"
                    "\tmovl %edi, %edi\n\tmovl (%rax,%rdi,4), %eax\n\tmovl %eax, (%rsi)\n"
                    "\txorl %eax, %eax\n\tret")
        if re.fullmatch(r"(cufft|cusolver|p?nccl|cuFile)GetVersion", name):
            return f"movl ${self.number()}, (%rdi)\n\txorl %eax, %eax\n\tret"
        if re.fullmatch(r"cusparse(Lt)?GetVersion", name):
            return f"movl ${self.number()}, (%rsi)\n\txorl %eax, %eax\n\tret"
        if name == "nvshmem_info_get_version":
            return f"movl ${major}, (%rdi)\n\tmovl ${minor}, (%rsi)\n\tret"
        if name == "nvshmemx_vendor_get_version_info":
            return (f"movl ${major}, (%rdi)\n\tmovl ${minor}, (%rsi)\n\tmovl ${patch}, (%rdx)\n"
                    "\tret")
        if name == "nvshmem_info_get_name":
            return "movb $0, (%rdi)\n\tret"
        if name.endswith("GetErrorName"):
            return "leaq .Lword(%rip), %rax\n\tret"
        if name.endswith("GetErrorString") or name.endswith("GetLastError"):
            return "leaq .Lsentence(%rip), %rax\n\tret"
        return None

    @staticmethod
    def tail(kind):
        return f".Lrefuse_{kind}"

    def symbols(self):
        print(f"/* Made by unserved.py: the names of {self.soname}. */\n\t.text")
        for name, kind in sorted(self.names.items()):
            code = self.known(name)
            if not code:  # %r11 belongs to nobody between a call and its function
                code = f"leaq 1b(%rip), %r11\n\tjmp {self.tail(kind)}"
            print(f"\t.globl {name}\n\t.type {name}, @function\n{name}:\n1:\t{code}\n"
                  f"\t.size {name}, . - {name}")
        answers = {"status": self.status, "value": self.value, "pointer": 0, "void": 0}
        for kind in sorted({"status", *self.names.values()}):
            print(f"{self.tail(kind)}:\n\tmovq %r11, %rdi\n\tleaq .Llibrary(%rip), %rsi\n"
                  "\tleaq .Lword(%rip), %rdx\n\tleaq .Lsaid(%rip), %rcx\n\tsubq $8, %rsp\n"
                  "\tcall unserved_called\n\taddq $8, %rsp\n"
                  f"\tmovabsq ${answers[kind]}, %rax\n\tret")
        print("\t.section .rodata\n\t.balign 4\n.Lversion:\n\t.long "
              f"{', '.join(str(n) for n in self.version)}\n"
              f".Llibrary:\n\t.asciz \"{self.soname}\"\n.Lword:\n\t.asciz \"{self.word}\"\n"
              f".Lsentence:\n\t.asciz \"vcuda has no front for {self.soname} yet\"\n"
              "\t.bss\n\t.balign 4\n.Lsaid:\n\t.zero 4\n"
              "\t.section .note.GNU-stack, \"\", @progbits")

    def map(self):
        print(f"/* Made by unserved.py. */\n{self.node} {{".replace("\n {", "\n{"))
        print("global:\n" + "".join(f"\t{name};\n" for name in sorted(self.names)) + "};")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("symbols", "map"):
        sys.exit(__doc__)
    if sys.argv[2].split(".so.")[0] not in LIBRARIES:
        sys.exit(f"{sys.argv[2]}: not one of {' '.join(LIBRARIES)}")
    getattr(Library(sys.argv[2]), sys.argv[1])()
