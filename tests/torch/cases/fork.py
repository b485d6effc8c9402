# Fork after import: the child may use CUDA.  Fork after use: the child is told, the parent goes on.
import os

import torch
from check import check, equal, raises


def in_child(what):
    pid = os.fork()
    if not pid:
        try:
            what()
            os._exit(0)
        except BaseException as error:
            print(f"child: {error!r}"[:400], flush=True)
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def product():
    x = torch.rand(32, 32)
    equal(torch.mm(x.cuda(), x.cuda()), torch.mm(x, x), "product", 1e-5)


def refused():
    raises(RuntimeError, lambda: torch.ones(2).cuda(), "forked subprocess")


check(in_child(product) == 0, "a child forked after import computes")
check(in_child(product) == 0, "and another")
product()
check(in_child(refused) == 0, "a child forked after use gets an exception")
product()
children = [os.fork() for _ in range(1)]
if not children[0]:
    os._exit(0)  # leaves without a word
check(os.waitpid(children[0], 0)[1] == 0, "a child that does nothing")
product()
