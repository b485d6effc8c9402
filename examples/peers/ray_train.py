"""Ray Train's TorchTrainer on the seats of a network: one worker for each of N GPUs.

    vcuda-peers submit NETWORK.yaml --working-dir examples/peers -- python3 ray_train.py 2
"""
import sys
import tempfile

import ray
import ray.train
from ray.train.torch import TorchConfig, TorchTrainer, get_device


def loop():
    from model import train
    context = ray.train.get_context()
    return train(get_device(), context.get_world_rank(), context.get_world_size())


if __name__ == "__main__":
    ray.init(log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        result = TorchTrainer(
            loop, torch_config=TorchConfig(backend="nccl"), run_config=ray.train.RunConfig(storage_path=folder),
            scaling_config=ray.train.ScalingConfig(num_workers=int(sys.argv[1]), use_gpu=True, resources_per_worker={"GPU": 1})).fit()
        print("losses", result.return_value, flush=True)
