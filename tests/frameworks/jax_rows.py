# SPDX-License-Identifier: Apache-2.0
"""JAX: what people do with it, a row each."""
import os
import sys

import answers
import jax
import jax.numpy as jnp
from answers import answer
from jax import lax

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "jax"))
KEY = jax.random.PRNGKey(7)
X = jax.random.normal(KEY, (96, 96))


@answer
def platform():
    return jax.devices()[0].platform


@answer
def device_kind():
    return jax.devices()[0].device_kind


@answer
def jit():
    return jax.jit(lambda x: jnp.sin(x) * 2 + jnp.tanh(x).sum())(X)


@answer
def grad():
    return jax.grad(lambda x: (jnp.sin(x) ** 3).sum())(X)


@answer
def hessian():
    return jax.hessian(lambda v: (jnp.outer(v, v) ** 2).sum())(X[0, :16])


@answer
def vmap():
    return jax.vmap(lambda row: jnp.sort(row) * row.sum())(X)


@answer
def scan():
    return lax.scan(lambda carry, row: (carry * 0.9 + row, carry.sum()), X[0], X)


@answer
def while_loop():
    return lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, s[1] @ X * 0.01), (0, X))


@answer
def cond():
    return jax.jit(lambda p: lax.cond(p > 0, jnp.sin, jnp.cos, X))(X[0, 0])


@answer
def product():
    return X @ X.T


@answer
def product_bfloat16():
    x = X.astype(jnp.bfloat16)
    return (x @ x).astype(jnp.float32)


@answer
def einsum():
    return jnp.einsum("ij,jk,lk->il", X, X, X)


@answer
def convolution():
    x = jax.random.normal(KEY, (4, 8, 20, 20))
    k = jax.random.normal(KEY, (16, 8, 3, 3))
    return lax.conv_general_dilated(x, k, (1, 1), "SAME")


@answer
def convolution_gradient():
    x = jax.random.normal(KEY, (4, 8, 20, 20))
    k = jax.random.normal(KEY, (16, 8, 3, 3))
    return jax.grad(lambda k: lax.conv_general_dilated(x, k, (2, 2), "VALID").sum())(k)


@answer
def fft():
    return jnp.fft.fft2(X), jnp.fft.rfft(X), jnp.fft.irfft(X)


@answer
def solve():
    return jnp.linalg.solve(X, X[:, :3])


@answer
def cholesky():
    return jnp.linalg.cholesky(X @ X.T + 100 * jnp.eye(96))


@answer
def eigh():
    return jnp.linalg.eigh(X + X.T)


@answer
def svd():
    return jnp.linalg.svd(X[:, :40])


@answer
def qr():
    return jnp.linalg.qr(X)


@answer
def lu():
    return jax.scipy.linalg.lu(X)


@answer
def triangular_solve():
    return jax.scipy.linalg.solve_triangular(X + 20 * jnp.eye(96), X, lower=True)


@answer
def batched_solve():
    return jnp.linalg.solve(jax.random.normal(KEY, (50, 16, 16)), jax.random.normal(KEY, (50, 16, 2)))


@answer
def random():
    return (jax.random.uniform(KEY, (1000,)), jax.random.permutation(KEY, 1000), jax.random.gamma(KEY, 2.0, (1000,)),
            jax.random.categorical(KEY, X))


@answer
def sparse_product():
    from jax.experimental import sparse
    return sparse.BCOO.fromdense(jnp.where(X > 1, X, 0)) @ X


@answer
def pallas():
    from jax.experimental import pallas as pl

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + y_ref[...]

    x = X[:64, :64]
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, x)


@answer
def command_buffers():
    @jax.jit
    def chain(x):
        for _ in range(12):
            x = jnp.sort(jnp.tanh(x @ X), axis=-1)
        return x

    first = chain(X)
    for _ in range(5):
        first = chain(first)
    return first


@answer
def callback():
    return jax.jit(lambda x: jax.pure_callback(lambda v: v * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(X)


@answer
def host_transfers():
    return [float(jax.device_put(X[i, i])) for i in range(20)]


@answer
def donated():
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.array(X)
    for _ in range(10):
        x = step(x)
    return x


@answer
def ragged_shapes():
    return [jax.jit(jnp.cumsum)(X.reshape(-1)[:n]) for n in (1, 17, 1000)]


@answer
def devices_together():
    if jax.device_count() < 2:
        return "one device"
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("d",))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    return jax.jit(lambda x: (x @ x.T).sum())(jax.device_put(X, spec))


@answer
def error_then_work():
    try:
        jnp.zeros((1 << 20, 1 << 20)).block_until_ready()
        got = "allocated"
    except Exception as error:
        got = type(error).__name__
    return got, X.sum()


@answer
def training():
    import transformer_training
    return transformer_training.build(small=True)()


answers.main("JAX", jax.__version__)
