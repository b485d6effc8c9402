"""The same without Ray: torchrun starts a process for each GPU.

    vcuda-peers run NETWORK.yaml -- torchrun --nproc-per-node 2 examples/peers/torchrun_train.py
"""
import os

import torch
import torch.distributed as dist

from model import train

if __name__ == "__main__":
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    losses = train(device, dist.get_rank(), dist.get_world_size())
    if dist.get_rank() == 0:
        print("losses", losses, flush=True)
    dist.destroy_process_group()
