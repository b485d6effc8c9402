#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/torch/run.py --json wrote, as the Markdown of docs/BENCHMARKS.md.

    bench/torch/table.py FILE.json
"""
import json
import sys


def time_of(row, seconds):
    if row.get("bound_us") is not None:
        return f"{seconds / row['steps'] * 1e6:.1f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def bound_of(row):
    if row.get("bound_seconds") is not None:
        return f"≤ native + {row['bound_seconds']:.1f} s"
    if row.get("bound_us") is not None:
        return f"≤ {row['bound_us']:.0f} µs"
    return f"≤ {row['bound']:.2f}" if row.get("bound") is not None else ""


def measured(row):
    low, high = row["interval"]
    trips = f"{row['trips_per_step']:.2f}" if "trips_per_step" in row else ""
    syncs = f"{row['syncs_per_step']:.2f}" if "syncs_per_step" in row else ""
    held = {"pass": "yes", "fail": "**no**"}.get(row["verdict"], "")
    first = "{:.0f}, {:.0f} ms".format(*(t * 1e3 for t in row["first"])) if "first" in row else ""
    return [time_of(row, row["native"]), time_of(row, row["remote"]),
            f"{row['ratio']:.3f} ({low:.3f}–{high:.3f})", bound_of(row), held, trips, syncs, first]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: table.py FILE.json")
    try:
        with open(sys.argv[1]) as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"table.py: {sys.argv[1]}: {error}")
    remote = data["hello"].get("remote", {})
    client, agent = data["client_cores"], data["agent_cores"]
    print(f"PyTorch {remote.get('torch')} on one {remote.get('device')}, {data['when']}: median of "
          f"{data['pairs']} pairs after one that is not counted, in brackets the ratio's 95 % "
          f"bootstrap interval. Program and sidecar on cores {client[0]}–{client[-1]}, agent and "
          f"worker on {agent[0]}–{agent[-1]}, loopback TCP, `/dev/nvidia*` "
          f"{'hidden' if remote.get('hidden') else 'not hidden'} from the remote arm.\n")
    if data.get("check"):
        print("| example | natively and remotely | held |\n|---|---|---|")
        for row in data["rows"]:
            held = "yes" if row["verdict"] == "pass" else "**no**"
            print(f"| {row['title']} | {row['text']} | {held} |")
        return
    print("| | added round trip | native | remote | ratio | must hold | held | round trips a step | "
          "synchronizing calls a step | first time, native and remote |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    for row in data["rows"]:
        added = f"{row['delay_us']} µs" if row["delay_us"] else ""
        if row.get("round_trip_us"):
            added += f" (`.item()` takes {row['round_trip_us']:.0f} µs)"
        cells = measured(row) if "ratio" in row else \
            ["", "", row.get("error", "not measured")[:120], bound_of(row), "**no**", "", "", ""]
        print(f"| {row['title']} | {added} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
