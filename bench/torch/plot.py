#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what bench/torch/run.py --json wrote: the ratios with their intervals and bounds, and how
they grow with the round trip.

    bench/torch/plot.py FILE.json OUT.svg|OUT.png
"""
import json
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot.py FILE.json OUT.svg|OUT.png")
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: matplotlib is not installed (python3 -m pip install matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    try:
        with open(sys.argv[1]) as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"plot.py: {sys.argv[1]}: {error}")
    rows = [row for row in data["rows"] if "ratio" in row]
    near = [row for row in rows if not row["delay_us"] and row["bound_us"] is None]
    if not near:
        sys.exit(f"plot.py: {sys.argv[1]} has no ratio to draw")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), width_ratios=(3, 2))

    places = list(range(len(near)))[::-1]
    ratios = [row["ratio"] for row in near]
    errors = [[max(0.0, row["ratio"] - row["interval"][0]) for row in near],
              [max(0.0, row["interval"][1] - row["ratio"]) for row in near]]
    colors = ["#c44" if row["verdict"] == "fail" else "#48a" for row in near]
    left.barh(places, ratios, xerr=errors, color=colors, height=0.6)
    for place, row in zip(places, near):
        if row["bound"] is not None:
            left.plot([row["bound"]] * 2, [place - 0.4, place + 0.4], color="black")
    left.axvline(1, color="gray", linewidth=0.8, linestyle=":")
    left.set_yticks(places, [row["title"] for row in near])
    left.set_xlabel("time through vcuda / native time (line: what must hold)")

    for name in dict.fromkeys(row["name"] for row in rows if row["delay_us"]):
        points = sorted((row["delay_us"], row["ratio"]) for row in rows if row["name"] == name)
        right.plot(*zip(*points), marker="o", label=name)
    if right.lines:
        right.axhline(1, color="gray", linewidth=0.8, linestyle=":")
        right.set_xlabel("added round-trip time, µs")
        right.set_ylabel("time through vcuda / native time")
        right.legend()
    else:
        right.set_axis_off()
    device = data["hello"].get("remote", {}).get("device", "")
    version = data["hello"].get("remote", {}).get("torch", "")
    figure.suptitle(f"PyTorch {version}, {device}, {data['when']}, median of {data['pairs']} pairs")
    figure.tight_layout()
    figure.savefig(sys.argv[2])


if __name__ == "__main__":
    main()
