"""A transformer, trained with FSDP2: each GPU holds a part of every parameter.

    torchrun --nproc-per-node 2 fsdp2.py
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS, BATCH, LENGTH, WORDS, WIDTH = 60, 16, 24, 64, 128


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(x)


def main():
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(kind, int(os.environ["LOCAL_RANK"])) if kind == "cuda" else torch.device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
    mesh = init_device_mesh(kind, (int(os.environ["WORLD_SIZE"]),))
    torch.manual_seed(0)
    model = Model().to(device)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(STEPS):
        # Each sequence counts on by a stride of its own.
        first, stride = torch.randint(WORDS, (2, BATCH, 1), generator=generator)
        tokens = ((first + stride % 5 * torch.arange(LENGTH + 1)) % WORDS).to(device)
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == STEPS - 1:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            held = sum(p.to_local().numel() for p in model.parameters())
            if dist.get_rank() == 0:
                print(f"step {step}: loss {mean.item() / dist.get_world_size():.4f}, "
                      f"{held} parameters of {sum(p.numel() for p in model.parameters())} here", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
