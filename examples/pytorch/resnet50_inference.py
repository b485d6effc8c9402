#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 classifies images that come from ordinary (pageable) host memory."""
import torch

import common


def build(device, small=False, show=False, batch=1, steps=20):
    from torchvision.models import resnet18, resnet50
    common.seeded()
    if small:
        batch, steps = min(batch, 2), 2
    with torch.device(device):
        model = (resnet18 if small else resnet50)(weights=None).eval()
    images = torch.rand(batch, 3, 224, 224)

    @torch.no_grad()
    def run():
        classes = []
        logits = None
        for _ in common.progress(range(steps), "classify", show):
            logits = model(images.to(device))
            classes.append(logits.argmax(1).cpu())
        return {"classes": torch.stack(classes), "logits": logits.cpu()}

    return run


if __name__ == "__main__":
    common.main(__doc__, build)
