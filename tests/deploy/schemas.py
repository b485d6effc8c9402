#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schemas.py FOLDER SWAGGER CRDS...: JSON schemas for kubeconform, one file a kind.

SWAGGER is Kubernetes' own description; CRDS are folders with definitions of others.  All are strict:
a key that a schema does not know is refused.
"""
import json
import pathlib
import re
import sys

import yaml

# A plain "=" is a string, whatever YAML 1.1 thought.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: node.value)


def write(folder, kind, group, version, schema):
    name = "-".join(part for part in (kind.lower(), group.split(".")[0], version) if part)
    (folder / f"{name}.json").write_text(json.dumps(schema))


def core(folder, swagger):
    known = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    for name, definition in known.items():
        if "properties" in definition and not name.endswith("JSONSchemaProps"):
            definition.setdefault("additionalProperties", False)
            for value in definition["properties"].values():
                value.pop("format", None)
        if name.endswith("IntOrString"):
            definition.update(type=["string", "integer"])
            definition.pop("format", None)
        if name.endswith("resource.Quantity"):
            definition["type"] = ["string", "number"]
    for name, definition in known.items():
        for made in definition.get("x-kubernetes-group-version-kind", []):
            needed, todo = {}, [name]
            while todo:
                one = todo.pop()
                if one not in needed:
                    needed[one] = known[one]
                    todo += re.findall(r'"#/definitions/([^"]+)"', json.dumps(known[one]))
            write(folder, made["kind"], made["group"], made["version"],
                  {"$ref": f"#/definitions/{name}", "definitions": needed})


def strict(schema):
    """In place: no unknown keys, but where the definition keeps them; no formats, no nullable."""
    if isinstance(schema, list):
        for item in schema:
            strict(item)
        return schema
    if not isinstance(schema, dict):
        return schema
    for value in schema.values():
        strict(value)
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("anyOf", None)
        schema["type"] = ["string", "integer"]
    elif isinstance(schema.get("properties"), dict) and schema.get("type") == "object" \
            and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    if isinstance(schema.get("format"), str):
        schema.pop("format")
    return schema


def custom(folder, place):
    for path in sorted(pathlib.Path(place).rglob("*.yaml")):
        for thing in yaml.load_all(path.read_text(), Loader):
            if not thing or thing.get("kind") != "CustomResourceDefinition":
                continue
            spec = thing["spec"]
            for version in spec["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                write(folder, spec["names"]["kind"], spec["group"], version["name"], schema)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    core(folder, sys.argv[2])
    for place in sys.argv[3:]:
        custom(folder, place)
    print(f"schemas.py: {len(list(folder.glob('*.json')))} kinds")


if __name__ == "__main__":
    main()
