"""A judge for the few words of JSON Schema that the report's schema uses; it refuses any other word."""

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
KNOWN = {"$schema", "$id", "$defs", "title", "description", "type", "required", "additionalProperties",
         "properties", "items", "enum", "const", "anyOf", "$ref", "minimum"}  # fmt: skip


def errors(data, schema, root=None, path="$"):
    """List where data breaks a schema."""
    root = root or schema
    assert not set(schema) - KNOWN, set(schema) - KNOWN
    found = []
    if "$ref" in schema:
        found += errors(data, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if isinstance(data, bool) or not any(isinstance(data, TYPES[name]) for name in names):
            return [f"{path}: {data!r} is no {names}"]
    if "const" in schema and data != schema["const"]:
        found.append(f"{path}: {data!r} is not {schema['const']!r}")
    if "enum" in schema and data not in schema["enum"]:
        found.append(f"{path}: {data!r} is none of {schema['enum']!r}")
    if "anyOf" in schema and all(errors(data, one, root, path) for one in schema["anyOf"]):
        found.append(f"{path}: {data!r} fits nothing")
    if "minimum" in schema and data < schema["minimum"]:
        found.append(f"{path}: {data!r} is too small")
    if isinstance(data, dict):
        known = schema.get("properties", {})
        found += [f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in data]
        for name, value in data.items():
            rest = schema.get("additionalProperties", True)
            if name in known:
                found += errors(value, known[name], root, f"{path}.{name}")
            elif rest is False:
                found.append(f"{path}: {name} is unknown")
            elif isinstance(rest, dict):
                found += errors(value, rest, root, f"{path}.{name}")
    if isinstance(data, list) and "items" in schema:
        for i, value in enumerate(data):
            found += errors(value, schema["items"], root, f"{path}[{i}]")
    return found
