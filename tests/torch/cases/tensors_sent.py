# CUDA tensors sent to another process and back: it sees what is there and changes it in place.
import torch
import torch.multiprocessing as mp
from check import check, equal


def other(inbox, outbox):
    tensor = inbox.get(timeout=60)
    outbox.put(tensor.cpu().clone())
    tensor.copy_(torch.arange(tensor.numel(), dtype=tensor.dtype) * 3)
    torch.cuda.synchronize()
    del tensor
    outbox.put("done")
    inbox.get(timeout=60)


if __name__ == "__main__":
    context = mp.get_context("spawn")
    for count in (100, 1 << 20):
        inbox, outbox = context.Queue(), context.Queue()
        process = context.Process(target=other, args=(inbox, outbox))
        process.start()
        before = torch.randn(count)
        tensor = before.cuda()
        inbox.put(tensor)
        equal(outbox.get(timeout=60), before, f"what {count} numbers are elsewhere")
        check(outbox.get(timeout=60) == "done", "the other process is done")
        equal(tensor, torch.arange(count) * 3.0, f"what it made of {count} numbers")
        inbox.put(None)
        process.join(60)
        check(process.exitcode == 0, f"the other process ended with {process.exitcode}")
