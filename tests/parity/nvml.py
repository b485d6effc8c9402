# SPDX-License-Identifier: Apache-2.0
"""The NVML front against nvml.h.  What is served is compiled with the newest header, which checks its
prototypes; here: what is not served, and that what is served was the same in the 12 series."""
import os
import re

import constants
import header


def declared(path):
    """{name: (result, parameters)} of every function of a nvml.h."""
    text = re.sub(r"\bDECLDIR\b", " ", constants.raw(path))
    return {name: (" ".join(result.split()), " ".join(params.split()))
            for result, name, params in re.findall(
                r"\b(nvmlReturn_t|const\s+char\s*\*)\s*(nvml\w+)\s*\(([^;{}]*)\)\s*;", text)}


def types(params):
    """Parameter types alone, without the names."""
    return [re.sub(r"(?<=[\s*])\w+(\[\w*\])?$", "", p.strip()).replace(" ", "") if " " in p.strip() else p
            for p in params.split(",")]


def differences(cache, front, description):
    """FRONT: shim/nvml; DESCRIPTION: of nvml.api (generator.names.Unserved)."""
    out = []
    newest = os.path.join(cache, "nvml", "include", "nvml.h")
    new, old = declared(newest), declared(os.path.join(cache, "nvml-12", "nvml.h"))
    unserved = set(description.kinds)
    served = set()
    for name in os.listdir(front):
        if name.endswith(".c"):
            with open(os.path.join(front, name), encoding="utf-8") as file:
                served |= set(re.findall(r"^(?:nvmlReturn_t|const char \*)\s*(nvml\w+)\(", file.read(), re.M))
    if len(new) < 400 or len(old) < 300 or len(unserved) < 200 or len(served) < 50:
        out.append(f"read only {len(new)}, {len(old)}, {len(unserved)}, {len(served)} names")
    out += [f"{name}: served, and in nvml.api" for name in sorted(served & unserved)]
    out += [f"{name}: neither served nor in nvml.api" for name in sorted(set(new) - served - unserved)]
    out += [f"{name}: answers with {new[name][0]}, nvml.api with a status"
            for name in sorted(unserved & set(new)) if new[name][0] != "nvmlReturn_t"]
    status = constants.enumerators(constants.raw(newest))[description.word]
    if description.status != status:
        out.append(f"nvml.api: {description.word} is {status}")
    out += [f"{name}: ({old[name][1]}) in 12, ({new[name][1]}) in 13"
            for name in sorted(served & set(old) & set(new))
            if types(old[name][1]) != types(new[name][1]) or old[name][0] != new[name][0]]
    return out
