# needs: 2 GPUs
# Two GPUs in one process: copies between them, work on both at once, and what belongs to which.
import torch
from check import check, driver, equal

check(torch.cuda.device_count() >= 2, f"{torch.cuda.device_count()} GPUs")
a, b = torch.device("cuda:0"), torch.device("cuda:1")
check(torch.cuda.can_device_access_peer(0, 1) == torch.cuda.can_device_access_peer(1, 0), "peers are each other's")
ids = {str(torch.cuda.get_device_properties(d).uuid) for d in (a, b)} if hasattr(
    torch.cuda.get_device_properties(a), "uuid") else {0, 1}
check(len(ids) == 2, f"two different ones: {ids}")

# Copies: across, back, of each size, from a stream of the one to a stream of the other.
for n in (1, 1000, 3 << 20):
    x = torch.arange(n, dtype=torch.float64)
    there = x.to(a).to(b)
    check(there.device == b, "it is on the second")
    equal(there, x, f"{n} numbers across")
    equal(there.to(a, non_blocking=True), x, f"{n} numbers back")
free = [torch.cuda.mem_get_info(d)[0] for d in (a, b)]
y = torch.empty(64 << 20, dtype=torch.uint8, device=b)
now = [torch.cuda.mem_get_info(d)[0] for d in (a, b)]
check(free[0] - now[0] < 32 << 20 <= free[1] - now[1], f"memory is taken from the second: {free} {now}")
del y

# Products on both, and a result of the one into the other.
m = torch.rand(256, 256, dtype=torch.float64)
on = {d: m.to(d) for d in (a, b)}
streams = {d: torch.cuda.Stream(d) for d in (a, b)}
for d in (a, b):
    streams[d].wait_stream(torch.cuda.default_stream(d))
for _ in range(4):
    for d in (a, b):
        with torch.cuda.stream(streams[d]):
            on[d] = torch.mm(on[d], m.to(d, non_blocking=True))
want = m
for _ in range(4):
    want = torch.mm(want, m)
for d in (a, b):
    streams[d].synchronize()
    equal(on[d], want, f"products on {d}", 1e-12)
event = torch.cuda.Event()
with torch.cuda.device(a):
    z = torch.mm(on[a], on[a])
    event.record()
with torch.cuda.device(b):
    event.wait(torch.cuda.current_stream(b))  # an event of the one, waited for on the other
    equal(torch.mm(z.to(b), on[b]), torch.mm(torch.mm(want, want), want), "across, behind an event", 1e-12)

if driver() == "nvidia":
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).double()
    inputs = torch.rand(32, 64, dtype=torch.float64)
    expected = model(inputs)
    expected.sum().backward()
    gradient = model[0].weight.grad.clone()
    model.zero_grad()
    # One half on each: what pipelines and device_map="auto" do.
    model[0].to(a), model[2].to(b)
    got = model[2](torch.relu(model[0](inputs.to(a))).to(b))
    equal(got, expected, "a model on two GPUs", 1e-12)
    got.sum().backward()
    equal(model[0].weight.grad, gradient, "its gradient", 1e-12)
