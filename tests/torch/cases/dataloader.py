# DataLoader with workers and pinned memory, before and after CUDA is in use.
import torch
from check import check, equal
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((300,), float(i)), i * i


def epoch(**options):
    seen = 0
    for values, squares in DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=True,
                                      **options):
        check(values.is_pinned() and squares.is_pinned(), "batches are pinned")
        d = values.cuda(non_blocking=True)
        s = squares.cuda(non_blocking=True)
        equal(d.cpu()[:, 0] ** 2, s.cpu(), "values")
        seen += len(values)
    check(seen == 64, f"{seen} items")


epoch()
epoch(persistent_workers=True, prefetch_factor=4)
