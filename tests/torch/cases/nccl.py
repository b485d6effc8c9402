# torch.distributed's nccl backend between two processes with a GPU each: collectives, sends and receives, a group of
# ranks, memory that is a window, and training of a linear model in parallel, whose losses are those of one process on the CPU. Once with
# the devices by number, and once as launchers hand them out, one visible to each, by its UUID.
# needs: 2 GPUs
# needs: 2.11
import os
import socket
import subprocess
import sys

import torch
import torch.distributed as dist
from check import check, equal

STEPS, RATE = 5, 0.01


def data(rank):
    torch.manual_seed(rank)
    return torch.rand(16, 8), torch.rand(16, 4)


def alone():
    """The losses of all data in one process."""
    (x0, y0), (x1, y1) = data(0), data(1)
    x, y, w, losses = torch.cat((x0, x1)), torch.cat((y0, y1)), torch.zeros(8, 4), []
    for _ in range(STEPS):
        left = torch.addmm(y, x, w, beta=-1)
        losses.append(left.square().sum().item())
        w = torch.addmm(w, x.t(), left, alpha=-RATE)
    return losses


def together(rank):
    x, y = (part.cuda() for part in data(rank))
    w, losses = torch.zeros(8, 4).cuda(), []
    for _ in range(STEPS):
        left = torch.addmm(y, x, w, beta=-1)
        loss = left.cpu().square().sum().reshape(1).cuda()
        dist.all_reduce(loss)
        losses.append(loss.item())
        slope = torch.mm(x.t(), left)
        dist.all_reduce(slope, op=dist.ReduceOp.AVG)
        w = torch.addmm(w, torch.eye(8).cuda(), slope, alpha=-2 * RATE)
    return losses


def collectives(rank):
    mine = torch.arange(8.) + 100 * rank
    other = torch.arange(8.) + 100 * (1 - rank)
    both = torch.cat((torch.arange(8.), torch.arange(8.) + 100))
    d = mine.cuda()
    dist.all_reduce(d)
    equal(d, mine + other, "all_reduce")
    d = mine.half().cuda()
    dist.all_reduce(d, op=dist.ReduceOp.MAX)
    equal(d, torch.arange(8.) + 100, "all_reduce of halves, MAX")
    d = mine.cuda()
    dist.broadcast(d, 1)
    equal(d, torch.arange(8.) + 100, "broadcast")
    d = torch.empty(16, device="cuda")
    dist.all_gather_into_tensor(d, mine.cuda())
    equal(d, both, "all_gather_into_tensor")
    d = torch.empty(4, device="cuda")
    dist.reduce_scatter_tensor(d, mine.cuda())
    equal(d, (mine + other)[4 * rank:4 * rank + 4], "reduce_scatter_tensor")
    d = torch.empty(8, device="cuda")
    dist.all_to_all_single(d, mine.cuda())
    equal(d, torch.cat((both[4 * rank:4 * rank + 4], both[8 + 4 * rank:12 + 4 * rank])), "all_to_all_single")
    d, e = torch.empty(8, device="cuda"), mine.cuda()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, e, 1 - rank), dist.P2POp(dist.irecv, d, 1 - rank)]):
        work.wait()
    equal(d, other, "isend and irecv")
    group = dist.new_group([0, 1])
    d = mine.cuda()
    dist.all_reduce(d, group=group)
    equal(d, mine + other, "all_reduce of another group")


def windows(rank, device):
    """Memory that is a window of all ranks, as PyTorch registers it: ncclMemAlloc's where the GPU has multicast,
    without which PyTorch does not ask for that."""
    backend = dist.group.WORLD._get_backend(device)
    try:
        pool = torch.cuda.MemPool(backend.mem_allocator)
    except RuntimeError:
        pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        d = torch.empty(1024, device=device)
    d.copy_(torch.arange(1024.) + 100 * rank)
    backend.register_mem_pool(pool, symm=True)
    dist.all_reduce(d)
    equal(d, 2 * torch.arange(1024.) + 100, "all_reduce in a window")
    backend.deregister_mem_pool(pool)
    del d


def run(rank):
    device = torch.device("cuda", rank if torch.cuda.device_count() == 2 else 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    collectives(rank)
    windows(rank, device)
    losses = together(rank)
    equal(torch.tensor(losses), torch.tensor(alone()), "the losses", 1e-5)
    dist.destroy_process_group()
    print(f"rank {rank}: {losses[0]:.4f} to {losses[-1]:.4f}")


def launch(visible):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port))
        if visible:
            env["CUDA_VISIBLE_DEVICES"] = visible[rank]
        ranks.append(subprocess.Popen([sys.executable, __file__], env=env))
    ended = [rank.wait(80) for rank in ranks]
    check(ended == [0, 0], f"the ranks ended with {ended}, visible {visible}")


if "RANK" in os.environ:
    run(int(os.environ["RANK"]))
else:
    launch(None)
    launch([f"GPU-{torch.cuda.get_device_properties(i).uuid}" for i in range(2)])
