#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every form of PTX instructions that ptxas takes is served, or of a kind that is known not to be.

    forms.py PTXAS LOAD [-v]

forms.txt has the forms; of what it spells, PTXAS says which are PTX, and LOAD (ptx_load) which of
those the interpreter does not serve.  -v prints them.
"""
import os
import re
import subprocess
import sys
import tempfile

# The forms that are not served (docs/SOFTGPU.md says why).
UNSERVED = tuple(re.compile(text) for text in (
    r"multimem\.",
    r"tex\.a?2dms\.",
    r"tex\..*\[\w+, \w+, ",  # a sampler of its own
    r"(tex\.(?!level)|tld4\.).*\](, \{[^}]*\})?, r\d+$",  # compared depths
    r"tex\.level\..*\], r\d+, r\d+$",
    r"txq\.force_unnormalized_coords\."))
CHUNK = 2000
ROUNDS = 20
# ptxas on a line that it does not take; generic addresses have 64 bits.
WRONG = re.compile(r"(?:line (?=\d+; *(?:error|fatal))|32-bit address on line ')(\d+)")

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.global .align 16 .b8 gv[64];
.global .texref tx;
.global .surfref sf;
.func fn() { ret; }
.visible .entry kern(.param .u64 kp) { ret; }
"""
DECLARED = (".reg .b8 b<9>; .reg .b16 h<40>; .reg .b32 r<40>, %a, %b, %c; .reg .b64 d<40>; "
            ".reg .b128 q<9>; .reg .pred p<9>; .shared .align 16 .b8 sh[64];")


def spell(text):
    """Each of the texts that TEXT stands for."""
    match = re.search(r"<([^<>]*)>", text)
    if not match:
        return [text]
    out = []
    for part in re.split(r"(?<!\\),", match.group(1)):
        part = part.replace("\\,", ",")
        out += spell(text[:match.start()] + part + text[match.end():])
    return out


def read_forms(path):
    forms = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                forms.update(dict.fromkeys(spell(line.strip())))
    return list(forms)


def accepted(ptxas, forms, folder):
    """Those of the forms that ptxas takes: it names the lines that it does not."""
    path = os.path.join(folder, "forms.ptx")
    for _ in range(ROUNDS):
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD.replace("{ ret; }\n.visible", "{ ret; }\n\n.visible"))
            file.write(".visible .entry all(.param .u64 kp) { " + DECLARED + "\n")
            file.writelines(form + ";\n" for form in forms)
            file.write("ret; }\n")
        run = subprocess.run([ptxas, "-arch=sm_90a", "-O0", path, "-o", "/dev/null"],
                             capture_output=True, text=True, timeout=120, check=False)
        first = HEAD.count("\n") + 3
        wrong = {int(n) - first for n in WRONG.findall(run.stderr)}
        if not wrong:
            if run.returncode:
                sys.exit("forms: ptxas: " + run.stderr[-500:])
            return forms
        forms = [form for k, form in enumerate(forms) if k not in wrong]
    sys.exit("forms: ptxas finds no end of errors")


def unserved(load, forms, folder):
    """Those of the forms, a kernel each, that the interpreter does not serve, and why."""
    path = os.path.join(folder, "forms.ptx")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for k, form in enumerate(forms):
            file.write(f".visible .entry k{k}(.param .u64 kp) {{ {DECLARED} {form}; ret; }}\n")
    run = subprocess.run([load, path], capture_output=True, text=True, timeout=120, check=False)
    found = re.findall(r": k(\d+): not served: (.*)", run.stdout)
    if run.returncode and not found:
        line = re.search(r":(\d+): ", run.stdout)
        at = int(line.group(1)) - HEAD.count("\n") - 1 if line else -1
        sys.exit("forms: the whole text is refused: " + run.stdout[:300] +
                 (forms[at] if 0 <= at < len(forms) else ""))
    return [(forms[int(k)], why) for k, why in found]


def main():
    ptxas, load = sys.argv[1:3]
    forms = read_forms(os.path.join(os.path.dirname(__file__), "forms.txt"))
    good = []
    with tempfile.TemporaryDirectory() as folder:
        for at in range(0, len(forms), CHUNK):
            good += accepted(ptxas, forms[at:at + CHUNK], folder)
        lacking = unserved(load, good, folder)
    known = [item for item in lacking if any(p.match(item[0]) for p in UNSERVED)]
    new = [item for item in lacking if item not in known]
    stale = [p.pattern for p in UNSERVED if not any(p.match(form) for form, _ in lacking)]
    for form, why in lacking if "-v" in sys.argv else new:
        print(f"{form}: not served: {why}")
    for pattern in stale:
        print(f"{pattern}: nothing of it is left unserved")
    print(f"forms: {len(good)} of {len(forms)} spelled are PTX; {len(good) - len(lacking)} are served, "
          f"{len(known)} are known not to be, {len(new)} are not")
    return 1 if new or stale or not good else 0


if __name__ == "__main__":
    sys.exit(main())
