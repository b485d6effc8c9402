#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains ResNet-50 on random images: SGD with momentum, mixed precision, a DataLoader with
workers and pinned memory."""
import torch
from torch.utils.data import DataLoader, Dataset

import common


class RandomImages(Dataset):
    """Images and labels made from their number."""

    def __init__(self, count, classes):
        self.count, self.classes = count, classes

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        numbers = torch.Generator().manual_seed(i)
        return torch.rand(3, 224, 224, generator=numbers), i * 7919 % self.classes


def build(device, small=False, show=False, batch=32, steps=8, workers=2):
    from torchvision.models import resnet18, resnet50
    common.seeded()
    cuda = torch.device(device).type == "cuda"
    if small:
        batch, steps = 2, 2
    with torch.device(device):
        model = (resnet18 if small else resnet50)(weights=None)
        loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(enabled=cuda)
    loader = DataLoader(RandomImages(batch * steps, 1000), batch_size=batch,
                        num_workers=workers, pin_memory=cuda)

    def run():
        losses = []
        for images, labels in common.progress(loader, "train", show):
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.float16, enabled=cuda):
                loss = loss_of(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.detach())
        return {"losses": torch.stack(losses).cpu()}

    return run


if __name__ == "__main__":
    common.main(__doc__, build)
