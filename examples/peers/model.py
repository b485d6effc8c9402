"""What the examples train: layers without bias, whose products are the GPU's; loss and step are the host's, so that it
runs on the software GPU, too. Whole numbers: every order of adding gives the same bits."""
import torch
import torch.distributed as dist

WIDTH, LAYERS, BATCH, STEPS = 32, 3, 16, 4


def average(_, bucket):
    """DDP's own hook divides by a kernel; NCCL averages by itself."""
    work = dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, async_op=True).get_future()
    return work.then(lambda done: done.value()[0])


def train(device, rank, world):
    """The losses of the whole batch, of which each rank has its part."""
    def whole(*shape):
        return torch.randint(-1, 2, shape, generator=numbers).float()
    numbers = torch.Generator().manual_seed(7)
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(whole(WIDTH, WIDTH))
    inputs, targets = (part.tensor_split(world)[rank] for part in (whole(BATCH, WIDTH), whole(BATCH, WIDTH)))
    model = model.to(device)
    if world > 1:
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[device], init_sync=False, gradient_as_bucket_view=True)
        model.register_comm_hook(None, average)
    losses = []
    for _ in range(STEPS):
        model.zero_grad(set_to_none=True)
        loss = (model(inputs.to(device)).cpu() * targets).sum() / len(inputs)
        loss.backward()
        total = loss.detach().reshape(1).to(device)
        if world > 1:
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
        losses.append(total.item())
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(weight.cpu() - weight.grad.cpu().sign())
    return losses
