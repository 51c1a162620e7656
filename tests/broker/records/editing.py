"""What the tests of records share: an editor of a config, and messages to give to it."""

import json

import msgspec

from balog.broker.quarantine import Quarantine, QuarantineConfig
from balog.broker.records.config import RecordRule
from balog.broker.records.editor import RecordEditor
from balog.broker.records.json_members import read_members

KEY = "0123456789abcdef0123456789abcdef"
SHA256 = {"how": "sha256", "key": {"env": "MASK_KEY"}}


def build(*rules, quarantine=None, said=None, **more):
    """Give an editor of these rules; ``quarantine`` is the path of a file."""
    said = [] if said is None else said
    opened = None
    if quarantine is not None:
        opened = Quarantine(QuarantineConfig(path=str(quarantine)), said.append)
    return RecordEditor(
        msgspec.convert(list(rules), list[RecordRule]),
        opened,
        said.append,
        **more,
    )


def record(data, stream="users", **more):
    text = data if isinstance(data, str) else json.dumps(data)
    rest = "".join(f', "{name}": {json.dumps(value)}' for name, value in more.items())
    return f'{{"type": "RECORD", "stream": "{stream}", "record": {text}{rest}}}\n'.encode()


def schema(properties, keys=(), stream="users", bookmarks=None, **more):
    document = {
        "type": "SCHEMA",
        "stream": stream,
        "schema": {"type": "object", "properties": properties, **more},
        "key_properties": list(keys),
    }
    if bookmarks is not None:
        document["bookmark_properties"] = bookmarks
    return json.dumps(document).encode() + b"\n"


def changed(rule, data):
    """Give the record that one rule makes of another, as the bytes that go on; None when it does not."""
    edited = build({"stream": "users", **rule}).edit("RECORD", record(data))
    if edited is None:
        return data if isinstance(data, str) else json.dumps(data)
    if not edited:
        return None
    ((kind, line),) = edited
    assert kind == "RECORD"
    assert line.endswith(b"}\n")
    return bytes(read_members(line)["record"]).decode()


def followed(rule, properties, keys=(), **more):
    """Give the SCHEMA message that one rule makes of another, as plain data."""
    line = schema(properties, keys, **more)
    edited = build({"stream": "users", **rule}).edit("SCHEMA", line)
    return json.loads(line if edited is None else edited[0][1])
