# SPDX-License-Identifier: Apache-2.0
"""The chart's README: README.md.in with a table of all values."""
import json
import re
import sys

import yaml


def readme(chart):
    """The text for the folder CHART."""
    rows, path, comment = [], [], None
    lines = (chart / "values.yaml").read_text().splitlines()
    values = yaml.safe_load("\n".join(lines))
    covered = None  # a map whose comment speaks for what is in it
    for line in lines:
        told = re.match(r"\s*# -- (.*)", line)
        key = re.match(r"(\s*)([A-Za-z]+):", line)
        if told:
            comment = told[1]
        elif key:
            path = [*path[:len(key[1]) // 2], key[2]]
            value = values
            for part in path:
                value = value[part] if isinstance(value, dict) else None
            inside = covered and path[:len(covered)] == covered and path != covered
            if comment:
                covered = path if isinstance(value, (dict, list)) and value else covered
                shown = json.dumps(value)
                if isinstance(value, (dict, list)) and len(shown) > 40:
                    shown = "see values.yaml"
                rows.append(f"| `{'.'.join(path)}` | `{shown}` | {comment} |")
            elif not isinstance(value, dict) and not inside:
                sys.exit(f"values.yaml: {'.'.join(path)} has no comment")
            comment = None
    text = (chart / "README.md.in").read_text()
    return text.replace("@VALUES@", "\n".join(["| value | default | |", "|---|---|---|", *rows]))
