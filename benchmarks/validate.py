"""Time the validation of payloads: the registry's validator, and what else Python has for JSON Schema and protobuf.

    python -m benchmarks.validate [--quick]

Each way gets payloads as bytes, decodes them and says valid or not; that all of them agree is checked first. One
thread, one core. All ways take turns; medians are compared. Trust the ratios, not the rates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import fastjsonschema
import jsonschema
import jsonschema_rs
import msgspec
import protovalidate
from google.protobuf import json_format, message_factory

from balog.registry.json_schema import JsonValidator
from balog.registry.protobuf import compile_proto
from benchmarks.history import show_ratio
from benchmarks.measure import interleaved, machine, medians

Way = Callable[[bytes], bool]

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["cls_type", "id", "price", "placed"],
    "properties": {
        "cls_type": {"const": "order"},
        "version": {"type": "string"},
        "id": {"type": "string", "minLength": 1},
        "price": {"type": "number", "minimum": 0},
        "currency": {"enum": ["EUR", "USD"]},
        "placed": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["sku"],
                "properties": {"sku": {"type": "string", "pattern": "^[A-Z]+$"}, "n": {"type": "integer"}},
                "additionalProperties": False,
            },
        },
    },
}
"""Without formats: fastjsonschema and jsonschema check other ones, or in another way."""

PROTO = b"""
syntax = "proto3";
import "buf/validate/validate.proto";
message Line {
  string sku = 1 [(buf.validate.field).string.pattern = "^[A-Z]+$"];
  int32 n = 2;
}
message Order {
  string id = 1 [(buf.validate.field).string.min_len = 1];
  double price = 2 [(buf.validate.field).double.gte = 0];
  string currency = 3 [(buf.validate.field).string = {in: ["EUR", "USD"]}];
  string placed = 4 [(buf.validate.field).string.pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"];
  repeated Line lines = 5;
}
"""


def payloads(count: int) -> list[bytes]:
    """Give payloads of about 160 bytes, of which every tenth is wrong at one place."""
    found = []
    for number in range(count):
        lines = [{"sku": "AB", "n": number}, {"sku": "cd" if number % 10 == 9 else "CD", "n": 2}]
        head = {"cls_type": "order", "version": "1.0.0", "id": f"o-{number}", "price": number / 4}
        found.append(msgspec.json.encode({**head, "currency": "EUR", "placed": "2026-11-22T08:00:00Z", "lines": lines}))
    return found


def ways() -> dict[str, Way]:
    """Give each way by its name; the first is what the others are compared with."""
    decode = msgspec.json.Decoder().decode
    ours, proto = JsonValidator(SCHEMA), compile_proto(PROTO)
    bare, oracle = jsonschema_rs.validator_for(SCHEMA), jsonschema.Draft202012Validator(SCHEMA)
    generated: Any = fastjsonschema.compile({**SCHEMA, "$schema": "http://json-schema.org/draft-07/schema#"})

    def by_generated(payload: bytes) -> bool:
        try:
            generated(decode(payload))
        except fastjsonschema.JsonSchemaException:
            return False
        return True

    return {
        "balog, JSON Schema": lambda payload: not ours.check(payload),
        "jsonschema-rs alone": lambda payload: bare.is_valid(decode(payload)),
        "fastjsonschema": by_generated,
        "jsonschema": lambda payload: oracle.is_valid(decode(payload)),
        "balog, protobuf": lambda payload: not proto.check(payload),
    }


def wire_ways() -> dict[str, Way]:
    """Give the ways from an encoded message to the JSON that is stored of it and a verdict."""
    ours = compile_proto(PROTO)
    kind = message_factory.GetMessageClass(ours.descriptor)
    rules = protovalidate.Validator()

    def by_google(wire: bytes) -> bool:
        message = kind.FromString(wire)
        json_format.MessageToJson(message, indent=None, always_print_fields_with_no_presence=True)
        return not rules.collect_violations(message)

    return {"balog, from the wire": lambda wire: not ours.read(wire)[1], "google's json_format": by_google}


def timed(way: Way, given: list[bytes]) -> Callable[[], float]:
    def measure() -> float:
        begin = time.perf_counter()
        for payload in given:
            way(payload)
        return (time.perf_counter() - begin) / len(given)

    return measure


@click.command()
@click.option("--quick", is_flag=True, help="a few seconds, rougher numbers")
def main(quick: bool) -> None:
    given = payloads(2_000 if quick else 50_000)
    found = ways()
    for payload in given[:200]:
        answers = {name: way(payload) for name, way in found.items()}
        assert len(set(answers.values())) == 1, (payload, answers)
    slow = {"jsonschema", "balog, protobuf"}
    good = [payload for number, payload in enumerate(given) if number % 10 != 9]
    print(machine("jsonschema-rs", "fastjsonschema", "jsonschema", "protovalidate"))
    rounds = 3 if quick else 7
    for title, some in (("all valid", good), ("every tenth wrong", given)):
        each = interleaved(
            {name: timed(way, some[: len(some) // 20] if name in slow else some) for name, way in found.items()}, rounds
        )
        seconds = medians(each)
        first = next(iter(seconds.values()))
        print(f"\n{len(given[0])} bytes each, {title}, median of {rounds} rounds")
        for name, took in seconds.items():
            print(f"{name:22}{1 / took:12,.0f} /s{took / first:10.2f} x balog")
        show_ratio(f"as fast as jsonschema-rs alone, {title}", each["jsonschema-rs alone"], next(iter(each.values())))
    kind = message_factory.GetMessageClass(compile_proto(PROTO).descriptor)
    messages = [json_format.Parse(payload, kind(), ignore_unknown_fields=True) for payload in given[:2_000]]
    wires = [message.SerializeToString() for message in messages]
    seconds = medians(interleaved({name: timed(way, wires) for name, way in wire_ways().items()}, rounds))
    first = next(iter(seconds.values()))
    print(f"\n{len(wires[0])} bytes of protobuf each, every tenth wrong, to JSON and a verdict")
    for name, took in seconds.items():
        print(f"{name:22}{1 / took:12,.0f} /s{took / first:10.2f} x balog")


if __name__ == "__main__":
    main()
