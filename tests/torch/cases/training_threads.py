# needs: kernels
# Several Python threads train on streams of their own; autograd has threads of its own too.
import threading

import torch
from check import check

failed, ends = [], {}


def train(seed):
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            numbers = torch.Generator().manual_seed(seed)
            x = torch.randn(64, 32, generator=numbers).cuda()
            w = torch.zeros(32, 1, device="cuda", requires_grad=True)
            truth = torch.randn(32, 1, generator=numbers).cuda()
            optimizer = torch.optim.Adam([w], lr=0.1)
            for _ in range(150):
                optimizer.zero_grad()
                loss = (torch.mm(x, w) - torch.mm(x, truth)).square().mean()
                loss.backward()
                optimizer.step()
            ends[seed] = loss.item()
    except BaseException as error:
        failed.append(repr(error))


train(1)
alone = ends.pop(1)
threads = [threading.Thread(target=train, args=(i,)) for i in range(1, 6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
    check(not thread.is_alive(), "a thread hangs")
check(not failed, failed[:1])
check(abs(ends[1] - alone) < 1e-5, f"the same work alone and among others: {alone}, {ends[1]}")
check(all(end < 0.05 for end in ends.values()), f"all converge: {ends}")
