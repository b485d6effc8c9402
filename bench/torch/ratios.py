# SPDX-License-Identifier: Apache-2.0
"""How sure a ratio is that was measured several times."""
import random
import statistics
import time


def interval(values, rounds=2000):
    """The median's 95 % bootstrap interval."""
    numbers = random.Random(0)
    medians = sorted(statistics.median(numbers.choices(values, k=len(values)))
                     for _ in range(rounds))
    return medians[rounds // 40], medians[-rounds // 40]


def in_turn(arms, pairs, until, seconds=120):
    """{name: what the arm measured, PAIRS times}, forwards and backwards in turn; fewer where monotonic time UNTIL is over."""
    samples = {arm.name: [] for arm in arms}
    for pair in range(pairs):
        if time.monotonic() > until:
            break
        for arm in arms if pair % 2 else arms[::-1]:
            samples[arm.name].append(arm.measure(seconds))
    return samples
