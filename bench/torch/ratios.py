# SPDX-License-Identifier: Apache-2.0
"""How sure a ratio is that was measured several times."""
import random
import statistics


def interval(values, rounds=2000):
    """The median's 95 % bootstrap interval."""
    numbers = random.Random(0)
    medians = sorted(statistics.median(numbers.choices(values, k=len(values)))
                     for _ in range(rounds))
    return medians[rounds // 40], medians[-rounds // 40]
