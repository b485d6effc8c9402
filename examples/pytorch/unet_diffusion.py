#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A denoising loop in the shape of Stable Diffusion: a text-conditioned UNet, guidance, DDIM.

The UNet is this file's own, with random weights: the picture is noise, the work is real.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

import common


class Residual(nn.Module):
    """Two convolutions with the time of the step mixed in."""

    def __init__(self, inner, outer, time):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inner), nn.SiLU(),
                                   nn.Conv2d(inner, outer, 3, padding=1))
        self.time = nn.Linear(time, outer)
        self.second = nn.Sequential(nn.GroupNorm(32, outer), nn.SiLU(),
                                    nn.Conv2d(outer, outer, 3, padding=1))
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x, time):
        y = self.first(x) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(y)


class Attention(nn.Module):
    def __init__(self, width, source, heads):
        super().__init__()
        self.heads = heads
        self.ask = nn.Linear(width, width, bias=False)
        self.tell = nn.Linear(source, 2 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x, source):
        def split(t):
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        key, value = self.tell(source).chunk(2, -1)
        y = F.scaled_dot_product_attention(split(self.ask(x)), split(key), split(value))
        return self.out(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Pixels attend to each other, then to the text."""

    def __init__(self, width, text, heads=8):
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own = Attention(width, width, heads)
        self.text = Attention(width, text, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x, text):
        y = self.norm(x).flatten(2).transpose(1, 2)
        z = self.norms[0](y)
        y = y + self.own(z, z)
        y = y + self.text(self.norms[1](y), text)
        y = y + self.mlp(self.norms[2](y))
        return x + y.transpose(1, 2).unflatten(2, x.shape[2:])


class UNet(nn.Module):
    def __init__(self, widths, text):
        super().__init__()
        time = 4 * widths[0]
        self.base = widths[0]
        self.time = nn.Sequential(nn.Linear(widths[0], time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, widths[0], 3, padding=1)
        self.down, self.shrink = nn.ModuleList(), nn.ModuleList()
        inner = widths[0]
        for width in widths:
            self.down.append(nn.ModuleList([Residual(inner, width, time),
                                            Transformer(width, text)]))
            self.shrink.append(nn.Conv2d(width, width, 3, stride=2, padding=1))
            inner = width
        self.middle = nn.ModuleList([Residual(inner, inner, time), Transformer(inner, text),
                                     Residual(inner, inner, time)])
        self.up = nn.ModuleList()
        for width in reversed(widths):
            self.up.append(nn.ModuleList([Residual(inner + width, width, time),
                                          Transformer(width, text)]))
            inner = width
        self.leave = nn.Sequential(nn.GroupNorm(32, inner), nn.SiLU(),
                                   nn.Conv2d(inner, 4, 3, padding=1))

    def forward(self, x, step, text):
        rate = torch.exp(-math.log(10000) * torch.arange(
            self.base // 2, device=x.device, dtype=torch.float32) / (self.base // 2))
        angle = step.float()[:, None] * rate
        time = self.time(torch.cat([angle.cos(), angle.sin()], 1).to(x.dtype))
        x = self.enter(x)
        kept = []
        for (residual, attend), shrink in zip(self.down, self.shrink):
            x = attend(residual(x, time), text)
            kept.append(x)
            x = shrink(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, time), text), time)
        for residual, attend in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = attend(residual(torch.cat([x, kept.pop()], 1), time), text)
        return self.leave(x)


def build(device, small=False, show=False, steps=20):
    common.seeded()
    widths, text_width, size = (320, 640, 1280), 768, 64
    if small:
        widths, text_width, size, steps = (32, 64), 64, 16, 3
    kind = torch.float16 if torch.device(device).type == "cuda" else torch.float32
    with torch.device(device):
        model = UNet(widths, text_width).to(kind).eval()
        text = torch.randn(2, 77, text_width).to(kind)
        noise = torch.randn(1, 4, size, size).to(kind)

    # The schedule is plain numbers: nothing of it has to be asked of the device.
    noises = torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, 1000) ** 2
    kept = torch.cumprod(1 - noises, 0).tolist()
    times = [round(999 * (steps - i) / steps) for i in range(steps + 1)]

    @torch.no_grad()
    def run():
        x = noise
        for i in common.progress(range(steps), "denoise", show):
            now, then = kept[times[i]], kept[times[i + 1]]
            step = torch.full((2,), times[i], device=x.device)
            both = model(torch.cat([x, x]), step, text)
            blank, guided = both.chunk(2)
            error = blank + 7.5 * (guided - blank)
            clean = (x - (1 - now) ** 0.5 * error) / now ** 0.5
            x = then ** 0.5 * clean.clamp(-4, 4) + (1 - then) ** 0.5 * error
        return {"latent": x.float().cpu()}

    return run


if __name__ == "__main__":
    common.main(__doc__, build)
