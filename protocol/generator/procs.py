# SPDX-License-Identifier: Apache-2.0
"""The list behind cuGetProcAddress: name without version -> who answers since which CUDA."""
from . import text


def twin_since(entry):
    """The CUDA version that brought the per-thread form: ptsz(7000)."""
    value = entry.options.get("ptsz") or entry.options.get("ptds")
    return int(value) if value else entry.since


def rows(api):
    """PROC and PROC_TWIN, sorted as cuda_proc_find wants them."""
    out = []
    for e in sorted(api.of("cuda"), key=lambda e: (e.base, e.since, e.name)):
        items = [e.base, e.name, str(e.since)]
        out.append(text.row("PROC_TWIN", *items, e.name + e.twin, str(twin_since(e))) if e.twin
                   else text.row("PROC", *items))
    return text.table(
        "cuGetProcAddress: PROC(NAME ASKED FOR, FUNCTION, SINCE), and PROC_TWIN with the per-thread\n"
        "form and since when; sorted by name as strcmp does, then by version.", text.packed(out, "PROC"))
