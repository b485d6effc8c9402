#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds that a stem, the name of a C file without folder and suffix, means one thing in the project.

A stem that more than one folder has is named in SHARED, with what it means in all of them.  Who adds
a file whose stem is elsewhere already either means the same, and finds it here, or takes another.
Tests are named by what they show, and generated files by their description: neither is looked at.

    tools/stems.py           names stems of several folders without a row, rows that nothing needs, and stems with two rows
    tools/stems.py --test    shows that it would find each kind of fault
"""
import os
import re
import subprocess
import sys

OUTSIDE = ("tests/", "bench/", "examples/", "softgpu/ptx/tests/")

# The libraries of NVIDIA's that have one: the file that gathers what is said of that library.
LIBRARIES = "cublaslt cudnn cufft cupti curand cusolver cusparse cusparselt nccl nvml"
SHARED = {
    "absent": "what Windows has not",
    "activity": "which of CUPTI's kinds are recorded",
    "adopt": "a process takes over what the one before it left",
    "array": "CUDA arrays",
    "array_map": "memory mapped into arrays, tile by tile",
    "attach": "a program joins the sidecar",
    "attention": "cuDNN's multi-head attention",
    "attribute": "attributes of a library's descriptors",
    "backend": "cuDNN's backend API",
    "barrier": "barriers of a kernel",
    "by_content": "a library's objects by what they hold",
    "callback": "cuFFT's callbacks",
    "capture": "stream capture",
    "capture_info": "what is asked of a capture",
    "certificate": "X.509 certificates",
    "channel": "one program joined to the sidecar",
    "collective": "NCCL's collectives",
    "comm": "NCCL's communicators",
    "conditional": "conditional nodes of graphs",
    "context": "CUDA contexts",
    "context_primary": "primary contexts",
    "convolution": "cuDNN's convolutions",
    "copy": "copies between memories",
    "descriptor": "a library's descriptors",
    "descriptor_make": "a library's descriptors, made and ended",
    "descriptors": "descriptors of files",
    "device": "devices: which there are, what never changes about one",
    "direct": "copies between agents that do not pass through the program",
    "driver": "what a core asks of the driver's room above it",
    "dropout": "cuDNN's dropout",
    "elf": "ELF files",
    "error_names": "names and texts of CUDA's results",
    "event": "CUDA events",
    "exec": "cuFFT's transforms",
    "factor": "factorizations",
    "fatbin": "fat binaries",
    "fill": "fills of memory",
    "forms": "functions that are another one with arguments filled in",
    "function": "functions of a module",
    "fused": "cuDNN's fused operations",
    "graph": "CUDA graphs",
    "graph_exec": "executable graphs",
    "graph_list": "nodes and edges of a graph, listed",
    "graph_node": "nodes of a graph, added and changed",
    "green": "green contexts",
    "group": "NCCL's groups of calls",
    "grouped": "cuBLAS' products in groups",
    "guard": "what loader guard and fronts tell each other",
    "handle": "what stands for an object that another process has",
    "handoff": "datagrams between the agent's front and a worker",
    "heartbeat": "the page by which a program sees that the sidecar runs",
    "host": "pinned host memory",
    "host_function": "functions of the program that a stream runs",
    "http": "HTTP",
    "image": "what a module is loaded from",
    "images": "the agent's cache of images",
    "ipc": "memory and events of other processes",
    "ipc_event": "events that processes share",
    "items": "arguments of a library's call as they travel",
    "knock": "the datagram that asks for a session's UDP socket",
    "latency": "how long calls take",
    "launch": "launches of kernels",
    "legacy": "a library's interface of before",
    "library": "CUlibrary and cudaLibrary_t",
    "light": "light://",
    "link": "the connections of a session",
    "linker": "the JIT linker, cuLink…",
    "local": "local://",
    "lu": "LU",
    "main": "where a program begins",
    "managed": "managed memory",
    "matmul": "matrix products of cuBLASLt and cuSPARSELt",
    "matrix": "cuSPARSE's matrices",
    "memop": "operations of streams on values in memory",
    "memory": "memory that a device reaches",
    "metrics": "what Prometheus is told",
    "mirror": "host memory that kernels reach",
    "module": "modules",
    "narrow": "functions with arguments of 32 bits",
    "network": "networks of people who share GPUs",
    "newer": "types of newer headers than ours",
    "node_child": "the graph inside of a node of a graph",
    "number": "numbers of a library's types, as its twin computes with them",
    "occupancy": "how many blocks fit",
    "open": "vcudaOpen",
    "options": "flags and environment of a process",
    "output": "what kernels print",
    "param": "NCCL's parameters",
    "peer": "devices that reach each other's memory; in command/, whose files are its verbs, vcuda peer",
    "plain": "what generated calls of a library stand on",
    "plan": "plans of cuDNN and cuFFT",
    "pointer": "what is known of an address",
    "poll": "poll()",
    "pool": "pools of memory",
    "proc": "cuGetProcAddress",
    "product": "products with a sparse matrix",
    "profile": "what the agents' CUPTI recorded of the GPUs",
    "query": "what is asked of NCCL",
    "quotas": "what a tenant's sessions may have together",
    "refactor": "cusolverRf",
    "reference": "references to textures and surfaces",
    "reference_set": "references, set",
    "renew": "what proves who a client is, made new",
    "resume": "a session goes on over new connections",
    "ring": "the ring of a channel's segment",
    "rnn": "recurrent networks",
    "segment": "memory that sidecar and program share",
    "session": "the state of a program at the agent",
    "settings": "settings of a process",
    "share": "memory that processes share by descriptors",
    "socket": "sockets",
    "sparse": "sparse matrices of a solver; in softgpu/sparse, cuSPARSE's twin",
    "spawn": "processes that are started",
    "state": "how a process is, for people and programs",
    "status": "numbers of results; in command/, whose files are its verbs, vcuda status",
    "stream": "CUDA streams",
    "stripe": "one more connection of a session",
    "stub": "what generated stubs are made of",
    "suspend": "communicators that are suspended",
    "sync": "waiting for a device, a stream, an event",
    "task": "work of a library's twin in streams",
    "tcp": "TCP",
    "tensor": "tensors with names",
    "tensor_copy": "copies of tensors between agents",
    "tensor_descriptor": "cuDNN's descriptors of tensors",
    "tensor_socket": "tensors with names for processes of the node",
    "tensor_table": "the table of tensors in the store",
    "tensors": "tensors with names, many",
    "texture": "textures and surfaces",
    "thread_gone": "the end of a thread of the program",
    "timing": "when frames came and went",
    "tls": "tls://",
    "topology": "what devices are to each other",
    "tree": "what a cuDNN descriptor holds, with all that it refers to",
    "unserved": "functions that answer not supported",
    "uploads": "payloads that the agent keeps",
    "vector": "vectors of cuBLAS and cuSPARSE",
    "visible": "CUDA_VISIBLE_DEVICES",
    "vmm": "virtual memory management",
    "vmm_host": "virtual memory management, of the program's machine's memory",
    "vmm_map": "physical memory mapped to addresses",
    "warm": "what a worker does before it has a session",
    "window": "NCCL's windows",
}
SHARED.update({name: "what is said of that library" for name in LIBRARIES.split()})


def doubles_of(source):
    """The faults of keys that this file's table has twice: a dict keeps the last one only."""
    keys = re.findall(r'(?m)^    "(\w+)": "', source)
    return [f"tools/stems.py: {key} has {keys.count(key)} rows" for key in sorted(set(keys)) if keys.count(key) > 1]


def folders_of(paths):
    """{stem: its folders}, of C files.  What stands for a file of the shim on Windows has its path."""
    found = {}
    for path in paths:
        if path.endswith((".c", ".h")) and not path.startswith(OUTSIDE) and "/generated/" not in path:
            folder, name = os.path.split(path)
            found.setdefault(name[:-2], set()).add(folder)
    return found


def faults_of(paths):
    """The faults of a list of paths."""
    found = folders_of(paths)
    faults = [f"{', '.join(sorted(folders))}: each has a file named {stem}: a row of tools/stems.py says what it means"
              for stem, folders in sorted(found.items()) if len(folders) > 1 and stem not in SHARED]
    return faults + [f"tools/stems.py: {stem} is in one folder at most: take it out"
                     for stem in SHARED if len(found.get(stem, ())) < 2]


def test(paths):
    """Each kind of fault is found."""
    if not any("named slab:" in fault for fault in faults_of(paths + ["softgpu/driver/slab.c"])):
        sys.exit("stems.py --test: a stem that gets a second folder is not found")
    if not any("renew is in one" in fault for fault in faults_of([p for p in paths if p != "sidecar/channel/renew.c" and p != "sidecar/channel/renew.h"])):
        sys.exit("stems.py --test: a row that nothing needs is not found")
    if not doubles_of('    "a": "one",\n    "b": "two",\n    "a": "three",\n'):
        sys.exit("stems.py --test: a stem with two rows is not found")
    print("stems: 3 kinds of fault are found")


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    paths = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=top, check=True, capture_output=True, text=True).stdout.split()
    if not paths:
        sys.exit("stems.py: found no files")
    with open(__file__, encoding="utf-8") as source:
        faults = faults_of(paths) + doubles_of(source.read())
    for fault in faults:
        print(fault)
    print(f"stems: {len(folders_of(paths))} stems, {len(SHARED)} in several folders, {len(faults)} faults")
    if not faults and "--test" in sys.argv[1:]:
        test(paths)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
