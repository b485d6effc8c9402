# needs: kernels
# CUDA graphs: changing inputs, several streams in one capture, two graphs that share a pool,
# a graph that is captured again, training captured whole.
import torch
from check import check, equal

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).cuda()
static = torch.randn(16, 64, device="cuda")


def warm(what):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            what()
    torch.cuda.current_stream().wait_stream(side)


with torch.no_grad():
    warm(lambda: model(static))
    first = torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        out = model(static)
    for i in range(20):
        static.copy_(torch.randn(16, 64))
        first.replay()
        equal(out, model(static), f"replay {i}", 1e-6)

    # Two branches in one capture.
    branch = torch.cuda.Stream()
    forked = torch.cuda.CUDAGraph()
    with torch.cuda.graph(forked):
        branch.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(branch):
            twice = static * 2
        plus = static + 1
        torch.cuda.current_stream().wait_stream(branch)
        both = twice + plus
    for i in range(5):
        static.copy_(torch.full((16, 64), float(i)))
        forked.replay()
        equal(both, torch.full((16, 64), 3.0 * i + 1), f"two branches {i}")

    # A pool shared by two graphs, replayed in order.
    pool = torch.cuda.graph_pool_handle()
    a, b = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(a, pool=pool):
        half = model(static)
    with torch.cuda.graph(b, pool=pool):
        end = half.softmax(1)
    static.copy_(torch.randn(16, 64))
    a.replay()
    b.replay()
    equal(end, model(static).softmax(1), "a shared pool", 1e-6)
    a.reset()
    b.reset()

    again = torch.cuda.CUDAGraph()
    with torch.cuda.graph(again):
        other = model(static).sum()
    again.replay()
    equal(other, model(static).sum(), "captured again", 1e-5)

# Forward, backward and step in one graph.
net = torch.nn.Linear(32, 4).cuda()
twin = torch.nn.Linear(32, 4).cuda()
twin.load_state_dict(net.state_dict())
x, y = torch.randn(8, 32, device="cuda"), torch.randn(8, 4, device="cuda")


def step(which, optimizer):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(which(x), y)
    loss.backward()
    optimizer.step()
    return loss


fast = torch.optim.SGD(net.parameters(), lr=0.1)
plain = torch.optim.SGD(twin.parameters(), lr=0.1)
warm(lambda: step(net, fast))
for _ in range(3):
    step(twin, plain)
whole = torch.cuda.CUDAGraph()
fast.zero_grad(set_to_none=True)
with torch.cuda.graph(whole):
    loss = step(net, fast)
for i in range(10):
    x.copy_(torch.randn(8, 32))
    y.copy_(torch.randn(8, 4))
    whole.replay()
    equal(loss, step(twin, plain), f"training step {i}", 1e-4)

# What is not allowed while capturing is told, and the stream is usable after it.
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        static.sum().item()
    check(False, ".item() while capturing raised nothing")
except RuntimeError as error:
    check("captur" in str(error), str(error)[:200])
torch.cuda.synchronize()
check(torch.ones(3, device="cuda").sum().item() == 3, "usable after a failed capture")
