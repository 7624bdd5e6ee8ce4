"""Validates JSON documents against JSON schemas, as far as `stepcast show schema` uses them.

    check_schema.py SCHEMAS DOCUMENT...   each by the schema that it names
    check_schema.py SCHEMAS --seeded DOCUMENT...   spoilt in four ways, each has to be refused

SCHEMAS is a folder with NAME.json. Stricter than the standard: a member that no schema names is
wrong, unless the schema says "additionalProperties".
"""
import copy
import json
import pathlib
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "unit", "type", "properties",
         "required", "items", "enum", "const", "anyOf", "additionalProperties"}


def is_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":  # 8.0 is one
        return is_type(value, "number") and value == int(value)
    return isinstance(value, TYPES[name])


class Schema:
    def __init__(self, whole):
        self.whole = whole

    def faults(self, value):
        return self.closed(self.whole, value, "")

    def closed(self, schema, value, path):
        """The faults of a value and of all inside, members without a schema among them."""
        faults, known = self.check(schema, value, path)
        if isinstance(value, dict) and known is not None:
            faults += [f"{path}/{key}: no schema names it" for key in value if key not in known]
        return faults

    def check(self, schema, value, path):
        """Faults, and the members that a schema names; None: any may be there."""
        unknown = set(schema) - KNOWN
        assert not unknown, f"this validator does not know {unknown}"
        faults, known = [], set()

        def join(more):
            nonlocal known
            known = None if known is None or more is None else known | more

        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            more, members = self.check(self.whole["$defs"][name], value, path)
            faults += more
            join(members)
        if "anyOf" in schema:
            tried = [self.check(one, value, path) for one in schema["anyOf"]]
            fits = [members for wrong, members in tried if not wrong]
            if not fits:
                best = min((wrong for wrong, _ in tried), key=len)
                faults.append(f"{path}: fits none of {len(tried)}, the nearest: {best[:3]}")
            for members in fits:
                join(members)
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(is_type(value, name) for name in types):
            return faults + [f"{path}: {json.dumps(value)[:60]} is no {' or '.join(types)}"], known
        if "const" in schema and value != schema["const"]:
            faults.append(f"{path}: {value!r} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            faults.append(f"{path}: {value!r} is none of {schema['enum']}")
        if isinstance(value, list) and "items" in schema:
            for i, one in enumerate(value):
                faults += self.closed(schema["items"], one, f"{path}/{i}")
        if isinstance(value, dict):
            faults += [f"{path}: lacks {key!r}" for key in schema.get("required", [])
                       if key not in value]
            properties = schema.get("properties", {})
            for key, inside in properties.items():
                if key in value:
                    faults += self.closed(inside, value[key], f"{path}/{key}")
            join(set(properties))
            others = schema.get("additionalProperties")
            if others is not None:
                for key in value:
                    if key not in properties and isinstance(others, dict):
                        faults += self.closed(others, value[key], f"{path}/{key}")
                join(None)
        return faults, known


def first_number(value):
    """Where a number of the document stands, as a list of keys."""
    for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inside, (int, float)) and not isinstance(inside, bool):
            return [key]
        if isinstance(inside, (dict, list)):
            deeper = first_number(inside)
            if deeper:
                return [key] + deeper
    return None


def spoilt(document):
    """The document, wrong in four ways."""
    for key in ("schema", "stepcast"):
        out = copy.deepcopy(document)
        del out[key]
        yield f"without {key}", out
    out = copy.deepcopy(document)
    out["something_else"] = 1
    yield "with a member that no schema names", out
    place = first_number(document)
    if place:
        out = copy.deepcopy(document)
        at = out
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = "many"
        yield f"with a text at {place}", out


def main():
    folder, *files = sys.argv[1:]
    seeded = files[:1] == ["--seeded"]
    schemas = {}
    for path in pathlib.Path(folder).glob("*.json"):
        whole = json.loads(path.read_text())
        schemas[whole["properties"]["schema"]["const"]] = Schema(whole)
    failures = 0
    for file in files[seeded:]:
        document = json.loads(pathlib.Path(file).read_text())
        named = document.get("schema") if isinstance(document, dict) else None
        if named not in schemas:
            print(f"{file}: names no schema: {named!r}")
            failures += 1
            continue
        if not seeded:
            faults = schemas[named].faults(document)
            for fault in faults[:8]:
                print(f"{file} ({named}): {fault}")
            failures += bool(faults)
            continue
        for how, wrong in spoilt(document):
            if not schemas[named].faults(wrong):
                print(f"{file} ({named}) {how} is not refused")
                failures += 1
    sys.exit(failures > 0)


main()
