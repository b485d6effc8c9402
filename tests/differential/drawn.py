# SPDX-License-Identifier: Apache-2.0
"""What the parameters of single functions are drawn from, where their types and names do not say it (calls.py).

DRAWN: (an expression for the function, one for the parameter, C++), the first that matches both.  What a family needs:

  - a wait for a word in memory holds already (wait_flags), or the sequence would never end;
  - of what is another at each run, or is the GPU's own, only the status is told (quiet, presence);
  - bytes that a driver has made are kept, and told by a name (blob_in, blob_out).
"""


def rows(functions, **parameters):
    """One function expression's parameters; a trailing _ is for what is a keyword of Python."""
    return [(functions, name.rstrip("_"), drawn) for name, drawn in parameters.items()]


DRAWN = [
    # What NVIDIA's driver does not survive, and that tells nothing.
    *rows(r"cuDeviceGetName", len="call.few({1, 7, 32, 64})"),
    *rows(r"cu(da)?GraphAddChildGraphNode", childGraph="call.other_graph(a1)"),

    # Memory that is mapped.
    *rows(r"cuMemCreate|cuMemAddressReserve|cuMemMap|cuMemUnmap|cuMemSetAccess|cuMemAddressFree",
          size="call.mostly({2 << 20, 2 << 20, 4 << 20}, {0, 1, 4096, 1 << 20, 1ull << 40, ~0ull})",
          alignment="call.mostly({0, 0, 2 << 20}, {1, 4096, ~0ull})", offset="call.mostly({0}, {4096, 2 << 20})",
          flags="call.mostly({0}, {1, 2})", count="call.mostly({1}, {0, 2})", addr="call.mostly({0}, {4096})"),

    # Managed memory.
    *rows(r"cuMemAllocManaged|cudaMallocManaged", dptr="call.made(CLASS_managed)", devPtr="call.made(CLASS_managed)",
          bytesize="call.mostly({4096, 65536, 1 << 20, 2 << 20}, {1, 0, ~0ull})",
          size="call.mostly({4096, 65536, 1 << 20, 2 << 20}, {1, 0, ~0ull})", flags="call.mostly({1, 1, 1, 2}, {0, 3, 4})"),
    *rows(r"cu(da)?Mem(Prefetch|Discard)\w*Batch\w*|cu(da)?MemDiscard\w*",
          dptrs="call.addresses(true, false)", sizes="call.values({4096, 65536}, {1 << 20, 2 << 20, 1, 0}, 8)",
          count="call.mostly({1, 1, 2, 4}, {0})", prefetchLocs="call.places()", prefetchLocIdxs="call.indices()",
          numPrefetchLocs="call.few({1, 1, 2, 0})", flags="call.mostly({0}, {1, 2})"),
    *rows(r"cu(da)?Mem(Prefetch|Advise|Range)\w*", devPtr="call.managed()",
          count="call.mostly({4096, 65536}, {1 << 20, 2 << 20, 1, 0})", dstDevice="call.mostly({0, 0, ~0ull}, {1, 99})",
          device="call.mostly({0, 0, ~0ull}, {1, 99})", flags="call.mostly({0}, {1, 2})"),
    *rows(r"cu(da)?MemRangeGetAttribute", data="call.output(4)", dataSize="call.mostly({4, 4, 4, 8}, {16, 0, 3})"),
    *rows(r"cu(da)?MemRangeGetAttributes", data="call.pointers()", dataSizes="call.values({4, 4, 4, 4, 8, 0}, 8)",
          attributes="call.values({1, 2, 3, 4, 5, 6, 7, 8, 99}, 4)", numAttributes="call.few({1, 2, 3, 4, 0})"),
    *rows(r"cu(da)?StreamAttachMemAsync", dptr="call.managed()", devPtr="call.managed()",
          length="call.few({0, 0, 4096, 2 << 20})", flags="call.few({1, 2, 4, 4, 0, 3})"),
    *rows(r"cuPointerGetAttributes", numAttributes="call.few({1, 2, 3, 4, 0})", data="call.pointers()",
          attributes="call.values({1, 2, 3, 4, 8, 9, 11, 12, 13, 16, 17, 99}, 4)"),

    # Operations on words of memory.
    *rows(r"cuStreamWaitValue\w+", addr="call.wait_address()", value="call.wait_value()", flags="call.wait_flags()"),
    *rows(r"cuStreamBatchMemOp\w*", count="call.mostly({1, 1, 2}, {3, 4, 0, 257})", flags="call.mostly({0}, {1, 2})",
          paramArray="call.structs<CUstreamBatchMemOpParams>(4)"),
    *rows(r"cuGraphBatchMemOpNodeGetParams", nodeParams_out="call.quiet()"),

    # Batches of copies.
    *rows(r"cu(da)?MemcpyBatchAsync\w*", dsts="call.addresses(false, true)", srcs="call.addresses(false, true)",
          sizes="call.values({4, 64, 4096}, {65536, 1 << 20, 0}, 8)", count="call.mostly({1, 1, 2, 4}, {0})",
          attrs="call.structs<{}>(4)", attrsIdxs="call.indices()", numAttrs="call.mostly({1}, {2, 0, 5})"),
    *rows(r"cu(da)?Memcpy3DBatchAsync\w*", numOps="call.mostly({1, 1, 2}, {0})", opList="call.structs<{}>(2)",
          flags="call.mostly({0}, {1, 2})"),

    # Graphs.
    *rows(r"cu(da)?GraphAdd\w*Node\w*", numDependencies="call.few({0, 0, 0, 1, 1, 2})"),
    *rows(r"cu(da)?Graph(Add|Exec)?NodeSetParams|cu(da)?GraphAddNode(_v2)?|cu(da)?GraphExecNodeSetParams",
          nodeParams="call.node_params<{}>()", dependencyData="call.structs<{}>(8)"),
    *rows(r"cu(da)?GraphConditionalHandleCreate", pHandle_out="call.condition_out()",
          defaultLaunchValue="call.few({0, 0, 1, 2})", flags="call.few({1, 1, 1, 0, 2})"),
    *rows(r"cuGraphKernelNodeGetParams", nodeParams="call.quiet()"),
    *rows(r"cu(da)?StreamGetCaptureInfo(_v[23])?", id_out="call.quiet()",
          dependencies_out="call.dependencies_out()", edgeData_out="call.quiet()",
          numDependencies_out="call.count_out()"),
    *rows(r"cu(da)?(Stream|GraphKernelNode)SetAttribute", value="call.made_of<CUlaunchAttributeValue>()",
          param="call.made_of<CUlaunchAttributeValue>()"),
    *rows(r"cu(da)?UserObjectCreate", ptr="call.few({0, 1})", destroy="call.callback()",
          initialRefcount="call.few({1, 1, 2, 0})", flags="call.few({1, 1, 1, 1, 0, 2})"),
    *rows(r"cu(da)?(UserObject|Graph)(Retain|Release)\w*", count="call.few({1, 1, 1, 0})",
          flags="call.few({0, 0, 0, 2})"),

    # Handles for another process.
    *rows(r"cu(da)?EventCreate(WithFlags)?", flags="call.mostly({0, 0, 1, 2, 2, 6}, {4, 8, 16})",
          Flags="call.mostly({0, 0, 1, 2, 2, 6}, {4, 8, 16})"),
    *rows(r"cu(da)?IpcGetMemHandle", pHandle="call.blob_out(BLOB_memory, 64)", handle="call.blob_out(BLOB_memory, 64)"),
    *rows(r"cu(da)?IpcOpenMemHandle(_v2)?", handle="call.blob_in(BLOB_memory, 64)", flags="call.few({1, 1, 1, 0, 2})",
          Flags="call.few({1, 1, 1, 0, 2})"),
    *rows(r"cu(da)?IpcGetEventHandle", pHandle="call.blob_out(BLOB_event, 64)", handle="call.blob_out(BLOB_event, 64)"),
    *rows(r"cu(da)?IpcOpenEventHandle", handle="call.blob_in(BLOB_event, 64)"),
    *rows(r"cu(da)?IpcCloseMemHandle", devPtr="call.device()"),
    *rows(r"cuMemExportToShareableHandle", shareableHandle="call.blob_out(BLOB_descriptor, 4)"),
    *rows(r"cu(da)?Mem(Pool)?ExportToShareableHandle", shareableHandle="call.blob_out(BLOB_pool, 4)",
          handle_out="call.blob_out(BLOB_pool, 4)", handleType="call.mostly({1}, {0, 2, 8, 77})",
          flags="call.mostly({0}, {1})"),
    *rows(r"cuMemImportFromShareableHandle", osHandle="call.descriptor(BLOB_descriptor)",
          shHandleType="call.mostly({1}, {0, 8, 77})"),
    *rows(r"cu(da)?MemPoolImportFromShareableHandle", handle="call.descriptor(BLOB_pool)",
          shareableHandle="call.descriptor(BLOB_pool)", handleType="call.mostly({1}, {0, 8, 77})",
          flags="call.mostly({0}, {1})"),
    *rows(r"cu(da)?MemPoolExportPointer", shareData_out="call.blob_out(BLOB_pointer, 64)",
          exportData="call.blob_out(BLOB_pointer, 64)", ptr="call.device()"),
    *rows(r"cu(da)?MemPoolImportPointer", shareData="call.blob_in(BLOB_pointer, 64)",
          exportData="call.blob_in(BLOB_pointer, 64)"),

    # Parts of a GPU.
    *rows(r"cu\w*GetDevResource", resource="call.resource_out()", type_="call.mostly({1}, {0, 77})", device="call.mostly({0}, {1, ~0ull})"),
    *rows(r"cuDevSmResourceSplitByCount", result="call.resource_out()", nbGroups="call.groups()",
          input="call.resource_in()", remainder="call.quiet()", flags="call.mostly({0, 1}, {2, 8})",
          minCount="call.mostly({1, 8, 16, 32}, {0, 1000})"),
    *rows(r"cuDevResourceGenerateDesc", resources="call.resource_in()", nbResources="call.few({1, 1, 1, 0, 2})"),
    *rows(r"cuGreenCtxCreate", flags="call.mostly({1}, {0, 2})", dev="call.mostly({0}, {1, ~0ull})"),
    *rows(r"cuGreenCtxStreamCreate", flags="call.few({1, 1, 1, 0, 2})", priority="call.few({0, 0, ~0ull, 1})"),
    *rows(r"cuGreenCtxDestroy", hCtx="call.seldom(CLASS_green)"),
    *rows(r"cuGreenCtxGetId", greenCtxId="call.quiet()"),

    # Code.
    *rows(r"cu(da)?(Module|Library)Load\w*", image="call.code()", fatCubin="call.code()", code="call.code()",
          fname="call.file()", fileName="call.file()", numOptions="call.few({0, 0, 1, 2})",
          options="call.values({0, 7, 7, 8}, 4)", optionValues="call.values({0, 1, 4, 16}, 8)",
          jitOptions="call.values({0, 7, 7, 8}, 4)", jitOptionsValues="call.values({0, 1, 4, 16}, 8)",
          numJitOptions="call.few({0, 0, 0, 1})", libraryOptions="call.values({1, 1, 77}, 4)",
          libraryOptionValues="call.values({0, 1}, 8)", numLibraryOptions="call.few({0, 0, 0, 1})"),
    *rows(r"cuLink\w+", numOptions="call.few({0, 0, 0, 1})", options="call.values({0, 7, 7}, 4)",
          optionValues="call.values({1, 4, 16}, 8)", type_="call.few({1, 1, 1, 0, 2, 77})", data="call.code()",
          size="call.code_size()", path="call.file()", cubinOut="call.presence()", sizeOut="call.quiet()"),
    *rows(r"cu(da)?Get(ProcAddress|DriverEntryPoint)\w*", symbol="call.symbol_name()", pfn="call.presence()",
          funcPtr="call.presence()",
          cudaVersion="call.few({2000, 3020, 5050, 7050, 10000, 11030, 11070, 12000, 12030, 13000, 0, 99000})",
          flags="call.few({0, 0, 1, 2, 3, 77})"),
    *rows(r"cuda(Func|GetFunc|GetKernel)\w*", func="call.kernel()", symbolPtr="call.kernel()",
          entryFuncAddr="call.kernel()"),
    *rows(r"cudaFuncSetAttribute", value="call.few({0, 1, 50, 1024, 65536, ~0ull})"),
    *rows(r"cudaLaunchKernelExC", func="call.kernel()", args="nullptr"),
    *rows(r"cuda\w*Symbol\w*", symbol="call.symbol()", src="call.host()", dst="call.host()",
          count="call.mostly({4, 4, 4, 0}, {8, 4096, 4097})", offset="call.mostly({0, 0, 0, 4}, {4096, 1})"),
    *rows(r"cuOccupancyMaxPotentialBlockSize\w*", blockSizeToDynamicSMemSize="nullptr"),

    # Tensor maps are encoded at addresses that are nobody's: they must not depend on the run.
    *rows(r"cuTensorMapEncode\w+", tensorMap="call.tensor_out()", tensorRank="call.mostly({3, 3, 4, 4, 5}, {0, 1, 2, 6})",
          globalAddress="call.mostly({0x10000000, 0x20000010}, {0x10000001, 0})",
          globalDim="call.values({64, 128, 64, 32, 256}, {1, 0, 1ull << 33, 64}, 8)",
          globalStrides="call.values({4096, 65536, 1 << 20}, {16, 24, 0, 1ull << 40}, 8)",
          boxDim="call.values({16, 16, 32}, {1, 0, 64, 256, 257}, 4)",
          elementStrides="call.values({1, 1, 1, 2}, {8, 9, 0}, 4)",
          pixelBoxLowerCorner="call.values({0, 0, ~0ull}, {1, 127, 128, 40000}, 4)",
          pixelBoxUpperCorner="call.values({0, 0, ~0ull}, {1, 127, 128, 40000}, 4)",
          pixelBoxLowerCornerWidth="call.mostly({0, 0, ~0ull}, {1, 128})",
          pixelBoxUpperCornerWidth="call.mostly({0, 0, ~0ull}, {1, 128})",
          channelsPerPixel="call.mostly({8, 16}, {64, 256, 257, 0})", pixelsPerColumn="call.mostly({1, 8, 64, 1024}, {1025, 0})",
          interleave="call.mostly({0, 0, 0, 0, 1, 2}, {77})", swizzle="call.mostly({0, 0, 0, 1, 2, 3, 3}, {77})",
          l2Promotion="call.mostly({0, 1, 2, 3}, {77})", oobFill="call.mostly({0, 0, 0, 0, 1}, {77})",
          mode="call.mostly({0, 1}, {77})", tensorDataType="call.mostly({0, 1, 2, 4, 6, 7, 8, 9, 10}, {77})"),
    *rows(r"cuTensorMapReplaceAddress", tensorMap="call.tensor_inout()",
          globalAddress="call.few({0x10000000, 0x30000000, 0x10000001, 0})"),

    # Of the whole process.
    *rows(r"cuCoredump\w+", attrib="call.few({1, 1, 3, 3, 7, 7, 99, 0})", value="call.number_inout({0}, 8)",
          size="call.number_inout({1, 4, 8, 0}, 8)"),
    *rows(r"cu(da)?Logs\w+", iterator_out="call.quiet()", iterator="call.quiet()", buffer="call.quiet()",
          size="call.number_quiet(1024)", flags="call.few({0, 0, 0, 1})", pathToFile='call.few({0})'),
    *rows(r"cu(da)?LaunchHostFunc|cu(da)?StreamAddCallback", fn="call.callback()", callback="call.callback()",
          userData="call.few({0, 1})", flags="call.few({0, 0, 0, 1})"),
    *rows(r"cu(da)?MemHost(Un)?[rR]egister(_v2)?", p="call.host()"),
    *rows(r"cudaSetValidDevices", device_arr="call.values({0, 0, 0, 1, 99}, 4)", len="call.few({1, 1, 0, 2})"),
    *rows(r"cudaChooseDevice", prop="call.zeros()"),
    *rows(r"cuMulticastGetGranularity", prop="call.made_of<CUmulticastObjectProp>()"),
    *rows(r"cu(da)?Memcpy3DPeer(Async)?", pCopy="call.made_of<CUDA_MEMCPY3D_PEER>()",
          p="call.made_of<cudaMemcpy3DPeerParms>()"),
    *rows(r"cuGraph(Add|Exec)?KernelNode(SetParams)?", nodeParams="call.made_of<CUDA_KERNEL_NODE_PARAMS_v1>()"),
    *rows(r"cu(da)?(Array|Mipmapped)\w*GetSparseProperties", sparseProperties="call.quiet()"),
    *rows(r"cuDeviceGetProperties|cudaGetDeviceProperties", prop="call.quiet()"),
]
