# SPDX-License-Identifier: Apache-2.0
"""bitsandbytes on PyTorch: quantized numbers and layers, a row each."""
import answers
import bitsandbytes
import bitsandbytes.functional as functional
import torch
from answers import answer

torch.manual_seed(0)
X = torch.randn(64, 64, dtype=torch.float16).cuda()


@answer
def four_bits():
    packed, state = functional.quantize_4bit(X)
    return packed.cpu(), functional.dequantize_4bit(packed, state).cpu()


@answer
def eight_bits():
    packed, state = functional.quantize_blockwise(X)
    return packed.cpu(), functional.dequantize_blockwise(packed, state).cpu()


@answer
def linear_eight_bits():
    layer = bitsandbytes.nn.Linear8bitLt(64, 32, has_fp16_weights=False).cuda()
    return layer(X).cpu()


@answer
def adam():
    parameter = torch.nn.Parameter(torch.ones(4096).cuda())
    parameter.grad = torch.ones(4096).cuda()
    bitsandbytes.optim.Adam8bit([parameter]).step()
    return parameter.detach().cpu()


answers.main("bitsandbytes", bitsandbytes.__version__)
