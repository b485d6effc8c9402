#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer on random tokens: one jitted step with gradients and Adam by hand.

Needs jax only. build(device, small) makes model and data and returns run(), as the examples of
examples/pytorch do; bench/torch times it.
"""
import argparse
import functools
import time

import jax
import jax.numpy as jnp

HEADS = 8


def parameters(key, layers, width, words):
    keys = iter(jax.random.split(key, 4 * layers + 1))

    def matrix(rows, columns):
        return jax.random.normal(next(keys), (rows, columns), jnp.float32) * rows ** -0.5

    blocks = [{"attention": matrix(width, 3 * width), "out": matrix(width, width),
               "up": matrix(width, 4 * width), "down": matrix(4 * width, width)} for _ in range(layers)]
    return {"words": matrix(words, width) * 0.1, "blocks": blocks}


def normalized(x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def block(x, p):
    batch, length, width = x.shape
    q, k, v = jnp.split(normalized(x) @ p["attention"], 3, -1)
    q, k, v = (t.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * (width // HEADS) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = (jax.nn.softmax(scores, -1) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    x = x + mixed @ p["out"]
    return x + jax.nn.gelu(normalized(x) @ p["up"]) @ p["down"]


def loss_of(p, tokens):
    x = p["words"][tokens[:, :-1]]
    for one in p["blocks"]:
        x = block(x, one)
    logits = normalized(x) @ p["words"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def step(p, first, second, count, tokens):
    loss, slope = jax.value_and_grad(loss_of)(p, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
    p = jax.tree.map(lambda w, m, v: w - 1e-3 * (m / (1 - 0.9 ** count)) /
                     (jnp.sqrt(v / (1 - 0.99 ** count)) + 1e-8), p, first, second)
    return p, first, second, loss


def build(device=None, small=False, show=False):
    layers, width, batch, length, steps = (2, 64, 2, 16, 2) if small else (6, 512, 8, 129, 10)
    key = jax.random.PRNGKey(0)
    tokens = jax.random.randint(jax.random.fold_in(key, 1), (batch, length), 0, 1000)

    def run():
        p = parameters(key, layers, width, 1000)
        first, second = jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)
        losses = []
        for count in range(1, steps + 1):
            p, first, second, loss = step(p, first, second, float(count), tokens)
            losses.append(loss)
        return {"loss": float(losses[-1]), "first loss": float(losses[0])}

    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="a small model, for a CPU")
    options = parser.parse_args()
    print(f"device: {jax.devices()[0].device_kind}")
    work = build(small=options.small)
    for _ in range(2):
        start = time.perf_counter()
        for name, value in work().items():
            print(f"{name}: {value:.6f}")
        print(f"took {time.perf_counter() - start:.3f} s")
