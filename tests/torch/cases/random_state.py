# The state of the device's random numbers is the program's own.
import torch
from check import check

torch.cuda.manual_seed_all(7)
state = torch.cuda.get_rng_state()
check(torch.cuda.initial_seed() == 7, "seed")
torch.cuda.manual_seed(8)
check(not torch.equal(state, torch.cuda.get_rng_state()), "another state")
torch.cuda.set_rng_state(state)
check(torch.equal(state, torch.cuda.get_rng_state()), "the first state")
