"""Data-parallel training with JAX in one process: the batch is split over all GPUs, the gradients are summed between them.

    python jax_devices.py
"""
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS, BATCH, WIDTH = 60, 128, 64


def loss_of(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


@jax.jit
def step(params, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), loss


def main():
    mesh = Mesh(jax.devices(), ("batch",))
    split, everywhere = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    key = jax.random.key(0)
    params = {"w1": jax.random.normal(key, (8, WIDTH)) * 0.3, "b1": jnp.zeros(WIDTH),
              "w2": jax.random.normal(key, (WIDTH, 1)) * 0.1}
    params = jax.device_put(params, everywhere)
    for number in range(STEPS):
        key, half = jax.random.split(key)
        x = jax.device_put(jax.random.uniform(half, (BATCH, 8)), split)
        y = jax.device_put(jnp.sin(x.sum(1, keepdims=True)), split)
        params, loss = step(params, x, y)
        if number % 20 == 0 or number == STEPS - 1:
            print(f"step {number}: loss {loss:.4f} on {len(x.sharding.device_set)} GPUs", flush=True)


if __name__ == "__main__":
    main()
