#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the generated folders and docs/COVERAGE.md out of protocol/api/*.api.

    protocol/generate.py [--output FOLDER]      FOLDER stands for the repository's root
    protocol/generate.py --count                how many bodies are generated, writing nothing
    protocol/generate.py --names FOLDER         into FOLDER what is only names and so not committed: the version
                                                scripts, and the libraries without a front

Writes only files whose text changes.  An entry that it cannot read stops it with FILE:LINE.
"""
import argparse
import os
import sys

from generator import (agent, api, callbacks, docs, forms, libraries, library, plain, procs, runtime, sent,
                       shim, text, unserved, wire)

HERE = os.path.dirname(os.path.abspath(__file__))
# Types first; then what the libraries stand on; then each library that is there.
FIRST = ("types.api", "vcuda.api", "cuda.api", "cudart.api")


def descriptions(folder=os.path.join(HERE, "api")):
    """The names of the .api files, in the order in which they are read."""
    more = {name for name in os.listdir(folder) if name.endswith(".api")} - {*FIRST}
    return [*FIRST, *sorted(more)]


def load(folder=os.path.join(HERE, "api")):
    description = api.Api()
    for name in descriptions(folder):
        api.read(os.path.join(folder, name), name, description)
    api.check(description)
    return description


def outputs(description):
    """{path from the repository's root: text}"""
    out = {}
    for family in ("vcuda", "cuda"):
        out[f"{family}_ops.h"] = wire.ops_header(description, family)
        out[f"{family}_wire.h"] = wire.wire_header(description, family)
    out["cuda_driver.h"] = agent.driver_header(description)
    out["cuda_driver.inc"] = agent.driver_list(description)
    out["cuda_driver.c"] = agent.driver_source(description)
    out["serve_hand.h"] = agent.serve_header(description)
    out["cuda_serve.c"] = agent.serve_source(description)
    out["cuda_stubs.c"] = shim.stubs(description)
    out["cuda_hand.h"] = shim.hand_header(description)
    out["vcuda_send.h"] = sent.header(description)
    out["cuda_calls.h"] = shim.calls_header(description)
    out["cuda_calls.c"] = shim.calls_source(description)
    out["cuda_calls.inc"] = shim.calls_list(description)
    out["cuda_procs.inc"] = procs.rows(description)
    out["op_last.h"] = wire.op_last(description)
    out["operations.inc"] = wire.operations(description)
    out["fuzz.dict"] = agent.fuzz_dictionary(description)
    out.update(runtime.files(description))
    for family, one in description.libraries.items():
        out.update(plain.files(description, family))
    out.update(libraries.files(description))
    out.update(unserved.files(description))
    out.update(forms.files(description))
    for one in description.libraries.values():
        if one.records:
            with open(os.path.join(HERE, "api", one.records), encoding="utf-8") as file:
                out.update(callbacks.files(description, one, file))
    out = {text.place(name): content for name, content in out.items()}
    for _, folder in text.FOLDERS:
        out[f"{folder}/.clang-format"] = "# Laid out by the generator.\nDisableFormat: true\n"
    out["docs/COVERAGE.md"] = docs.coverage(description)
    return out


def names(description):
    """{file name: text}"""
    return {**shim.maps(description), **library.maps(description), **unserved.build_files(description)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", default=os.path.join(HERE, ".."))
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--names", metavar="FOLDER")
    options = parser.parse_args()
    try:
        description = load()
        files = names(description) if options.names else outputs(description)
    except (api.ApiError, OSError) as error:
        sys.exit(f"generate.py: {error}")
    if options.count:
        for family in docs.titles(description):
            print(family, *forms.counts(description, [family]))
        print("all", *forms.counts(description, docs.titles(description)))
        return
    for path, content in sorted(files.items()):
        text.write(os.path.join(options.names or options.output, path), content)


if __name__ == "__main__":
    main()
