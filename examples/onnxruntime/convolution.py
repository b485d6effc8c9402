#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A convolution and a product by ONNX Runtime's CUDA provider; the model is made here."""
import argparse

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def model(size):
    random = numpy.random.RandomState(3)
    constants = {"kernel": random.standard_normal((4, 3, 3, 3)), "weights": random.standard_normal((size, 5))}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "kernel"], ["seen"], pads=[1, 1, 1, 1]), helper.make_node("MatMul", ["seen", "weights"], ["y"])],
        "example", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, size, 5])],
        [numpy_helper.from_array(value.astype(numpy.float32), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def build(device=None, small=False, show=False, provider="CUDAExecutionProvider"):
    size = 16 if small else 256
    session = onnxruntime.InferenceSession(model(size), providers=[provider])
    x = numpy.random.RandomState(4).standard_normal((1, 3, size, size)).astype(numpy.float32)

    def run():
        y = session.run(None, {"x": x})[0]
        return {"first": float(y[0, 0, 0, 0]), "squares": float((y * y).sum())}

    return run


def reference(small=False):
    """The same by ONNX Runtime's CPU provider."""
    return build(small=small, provider="CPUExecutionProvider")()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="little data")
    options = parser.parse_args()
    for name, value in build(small=options.small)().items():
        print(f"{name}: {value:.6f}, on the CPU {reference(options.small)[name]:.6f}")
