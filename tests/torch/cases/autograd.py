# Gradients of products: computed on autograd's own thread, and from many Python threads at once.
import threading

import torch
from check import check, equal

torch.manual_seed(0)


def step(seed):
    numbers = torch.Generator().manual_seed(seed)
    a, b, g = (torch.randn(*shape, generator=numbers, dtype=torch.float64)
               for shape in ((40, 30), (30, 20), (40, 20)))
    x, y = (t.clone().requires_grad_() for t in (a, b))
    torch.mm(x, y).backward(g)
    p, q = (t.cuda().requires_grad_() for t in (a, b))
    torch.mm(p, q).backward(g.cuda())
    equal(p.grad, x.grad, "gradient of the first", 1e-12)
    equal(q.grad, y.grad, "gradient of the second", 1e-12)


step(0)
failed = []


def many(seed):
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(10):
                step(seed * 100 + i)
    except BaseException as error:
        failed.append(repr(error))


threads = [threading.Thread(target=many, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
    check(not thread.is_alive(), "a thread hangs")
check(not failed, failed[:1])
