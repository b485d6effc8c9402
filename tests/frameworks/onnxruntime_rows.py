# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime with its CUDA provider: models of a few nodes, a row each."""
import answers
import numpy
import onnxruntime
from answers import answer
from onnx import TensorProto, helper, numpy_helper

RANDOM = numpy.random.RandomState(3)


def some(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def run(nodes, given, constants=(), outputs=("y",)):
    """What the nodes make of the inputs, all of them on the GPU: a node that fell back to the CPU is an error."""
    graph = helper.make_graph(nodes, "rows", [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
                                              for name, value in given.items()],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
                              [numpy_helper.from_array(value, name) for name, value in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CUDAExecutionProvider"])
    return session.run(list(outputs), given)


@answer
def providers():
    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


@answer
def product():
    return run([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": some(4, 8)}, [("w", some(8, 3))])


@answer
def convolution():
    return run([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": some(1, 3, 8, 8)}, [("w", some(4, 3, 3, 3))])


@answer
def pooling():
    return run([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], {"x": some(1, 3, 8, 8)})


@answer
def perceptron():
    return run([helper.make_node("Gemm", ["x", "v", "b"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
                helper.make_node("MatMul", ["r", "w"], ["y"])],
               {"x": some(4, 8)}, [("v", some(8, 16)), ("b", some(16)), ("w", some(16, 3))])


@answer
def softmax():
    return run([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {"x": some(4, 8)})


@answer
def recurrent():
    return run([helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=5)], {"x": some(7, 2, 3)},
               [("w", some(1, 20, 3)), ("r", some(1, 20, 5))])


answers.main("ONNX Runtime", onnxruntime.__version__)
