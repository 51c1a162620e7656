"""A small tap that keeps to every practice, but for the sins that ``--sin`` names. It needs nothing: it is quick."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

parser = argparse.ArgumentParser(prog="sinful-tap")
for name in ("config", "catalog", "properties", "state"):
    parser.add_argument(f"--{name}")
parser.add_argument("--discover", action="store_true")
parser.add_argument("--version", action="store_true")
parser.add_argument("--about", action="store_true")
parser.add_argument("--sin", action="append", default=[])
asked = parser.parse_args()
sins = set(asked.sin)

ORDERS = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "updated_at": {"type": "string", "format": "date-time"},
        "note": {"type": ["null", "string"]},
        "price": {"type": "number"},
    },
}
if "naive times" in sins:
    del ORDERS["properties"]["updated_at"]["format"]
if sins & {"number marks", "decimal marks"}:
    ORDERS["properties"]["updated_at"] = {"type": "integer" if "number marks" in sins else "string"}
SHOPS = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}
COUNT = 1200 if "many orders and quiet" in sins else 6000 if "ignores sigterm" in sins else 200
CHANGES = {
    "names of its own": ("orders", {"stream": "shop-orders"}),
    "draft 4": ("price", {"maximum": 10, "exclusiveMaximum": True}),
    "doubled id": ("shops", {"tap_stream_id": "orders"}),
    "schema is a text": ("shops", {"schema": "object"}),
    "unknown type": ("shops", {"schema": {"type": "object", "properties": {"id": {"type": "long"}}}}),
    "odd metadata": ("root", {"valid-replication-keys": "updated_at"}),
    "available key": ("id", {"inclusion": "available"}),
    "available replication key": ("updated_at", {"inclusion": "available"}),
    "two keys": ("orders", {"key_properties": ["price"]}),
    "odd method": ("root", {"forced-replication-method": "SOMETIMES"}),
    "lost replication key": ("orders", {"replication_key": "changed"}),
    "selects": ("root", {"selected": True}),
}
"""Sins of the catalog: what changes in a part of it."""
SPOILT = {"wrong type": {"price": "much"}, "null key": {"id": None}}
"""Sins of a record, of half of all with ``half`` before them: its changes."""
TRACE = "Traceback (most recent call last):\n  File 'x.py', line 1, in f\n"
term = False


def log(level, text):
    sys.stderr.write(f"{level} {text}\n")
    sys.stderr.flush()


def fail(text):
    if "silent failure" in sins:
        sys.exit(1)
    if "quiet death" in sins:
        log("INFO", "starting")
        sys.exit(1)
    if "traceback only" in sins:
        raise RuntimeError(text)
    log("INFO" if "failure at info" in sins else "CRITICAL", text)
    sys.exit(1)


def say(message, end="\n"):
    if "no state" in sins and message["type"] == "STATE":
        return
    sys.stdout.write(json.dumps(message) + end)
    sys.stdout.flush()


def on_term(number, frame):
    global term
    term = True
    if "hangs on sigterm" in sins:
        time.sleep(30)


def entry(name, schema, method, key=None):
    metadata = [
        {
            "breadcrumb": [],
            "metadata": {"table-key-properties": ["id"], "forced-replication-method": method, "inclusion": "available"},
        }
    ]
    for prop in schema["properties"]:
        inclusion = "automatic" if prop in ("id", key) else "available"
        metadata.append({"breadcrumb": ["properties", prop], "metadata": {"inclusion": inclusion}})
    found = {"tap_stream_id": name, "stream": name, "schema": schema, "key_properties": ["id"], "metadata": metadata}
    if key:
        metadata[0]["metadata"]["valid-replication-keys"] = [key]
        found["replication_key"] = key
    return found


def discover():
    if "discovery fails" in sins:
        fail("cannot ask the source")
    orders = entry("orders", ORDERS, "INCREMENTAL", "updated_at")
    shops = entry("shops", SHOPS, "FULL_TABLE")
    streams, root = [orders, shops], orders["metadata"][0]["metadata"]
    parts = {"orders": orders, "shops": shops, "root": root, "price": orders["schema"]["properties"]["price"]}
    parts |= {"id": orders["metadata"][1]["metadata"], "updated_at": orders["metadata"][2]["metadata"]}
    for sin, (part, changes) in CHANGES.items():
        if sin in sins:
            parts[part] |= changes
    if "no catalog" in sins:
        return print("there is none")
    if "shaky discovery" in sins:
        shops["schema"]["properties"][f"p{random.random()}"] = {"type": "string"}
    if "lost breadcrumb" in sins:
        orders["metadata"].append({"breadcrumb": ["properties", "gone"], "metadata": {"inclusion": "available"}})
    if "no inclusion" in sins:
        del orders["metadata"][3]["metadata"]["inclusion"]
    if "lost key" in sins:
        root["table-key-properties"] = orders["key_properties"] = ["number"]
    if sins & {"inclusions in schemas", "available key in the schema"}:
        for stream in streams:
            for item in stream["metadata"][1:]:
                of_it = stream["schema"]["properties"][item["breadcrumb"][1]]
                of_it["inclusion"] = item["metadata"].pop("inclusion")
        if "available key in the schema" in sins:
            orders["schema"]["properties"]["id"]["inclusion"] = "available"
    if "no method" in sins:
        del shops["metadata"][0]["metadata"]["forced-replication-method"]
    if "discovery prints" in sins:
        print("discovering {}")
    print(json.dumps({"streams": streams}, indent=2))
    if "discovery prints after" in sins:
        print("done")
    return None


def read(option):
    path = getattr(asked, option)
    if path is None:
        return None
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        if f"lenient {option}" in sins:
            return {"base": "x", "token": "lenient"}
        fail(f"--{option} cannot be read: {type(error).__name__}")


def selection(catalog, properties):
    """By stream the properties that are selected."""
    chosen = {}
    if properties is not None and catalog is None:
        for item in properties["streams"]:
            if item["schema"].get("selected"):
                said = item["schema"]["properties"]
                chosen[item["tap_stream_id"]] = {name for name in said if said[name].get("selected", True)}
        return chosen
    for item in (catalog or {"streams": []})["streams"]:
        said = {tuple(each["breadcrumb"]): each["metadata"] for each in item["metadata"]}
        if said[()].get("selected"):
            chosen[item["tap_stream_id"]] = {
                name
                for name in item["schema"]["properties"]
                if said[("properties", name)].get("selected", True)
                or said[("properties", name)].get("inclusion", item["schema"]["properties"][name].get("inclusion"))
                == "automatic"
            }
    return chosen


def main():
    if asked.version:
        return print("sinful-tap 1.0.0") if "no version" not in sins else parser.error("unrecognized")
    if asked.about:
        return print("a tap for tests") if "no about" not in sins else parser.error("unrecognized")
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "ignores sigterm" in sins else on_term)
    config = read("config") or {}
    if "base" not in config:
        fail(f"config: base is missing{' in ' + json.dumps(config) if 'dumps config' in sins else ''}")
    if asked.discover:
        return discover()
    state = read("state") or {}
    catalog, properties = read("catalog") if "older" not in sins else None, read("properties")
    if "no properties form" in sins and properties is not None:
        parser.error("unrecognized arguments: --properties")
    if "breaks on properties" in sins and properties is not None and catalog is None:
        raise KeyError("catalog")
    if "breaks on both" in sins and properties is not None and catalog is not None:
        raise KeyError("both")
    if "breaks on foreign state" in sins and "a_stream_of_another_tap" in state.get("bookmarks", {}):
        raise KeyError("a_stream_of_another_tap")
    chosen = selection(catalog, properties)
    if "refuses nothing" in sins and not chosen:
        fail("no stream is selected")
    if "breaks on nothing" in sins and not chosen:
        raise StopIteration
    if "selects all" in sins:
        chosen = {"orders": set(ORDERS["properties"]), "shops": set(SHOPS["properties"])}
    for sin, *lines in (
        ("logs secret", f"INFO GET https://api.example?token={config.get('token')}"),
        (
            "logs public texts",
            f"INFO reading orders of production from {config['base']} since {config.get('start_date')}",
        ),
        ("retries", "WARNING 503 Server Error, retrying in 1 s"),
        ("gives up at warning", "WARNING orders: 503 on page 3, skipping the rest of the stream"),
        ("a thread dies", "INFO reading in threads", "Exception in thread Thread-1 (read):", TRACE + "KeyError: 'id'"),
        ("handles an exception", "WARNING page 3 failed, retrying", TRACE + "TimeoutError", "INFO page 3 is read"),
        ("logs error", "ERROR something is not quite right"),
    ):
        if sin in sins:
            sys.stderr.write("".join(f"{line}\n" for line in lines))
            sys.stderr.flush()
    bookmarks = dict(state.get("bookmarks", {}))
    if "stops early at times" in sins:
        config["most"] = 150 if properties or "a_stream_of_another_tap" in bookmarks else COUNT
    if "stops early" in sins:
        config["most"] = 100
    if "orders" in chosen:
        orders(chosen["orders"], bookmarks, config)
    if "shops" in chosen:
        shops(chosen["shops"], bookmarks)
    if "fails without output" in sins:
        log("ERROR", "the source answered 500 on page 3, stopping")
    if "fails in a traceback" in sins:
        log("ERROR", "something is not quite right")
        sys.stderr.write(TRACE + "KeyError: 'id'\n")
    if "fails in the end" in sins:
        fail("orders: 500 from the source")
    if "unknown stream" in sins:
        say({"type": "SCHEMA", "stream": "x", "schema": {"type": "object"}, "key_properties": []})
        say({"type": "RECORD", "stream": "x", "record": {"a": 1}})
    if "older" in sins and not chosen:
        return None
    final = {"bookmarks": bookmarks} | ({"currently_syncing": "shops"} if "never done" in sins else {})
    if "partitioned state" in sins:
        final = {"bookmarks": {"an account": {"orders": {"since": "2026"}}}}
    if "forgets state" in sins and state:
        final = {"bookmarks": {}}
    value = "later" if "text state" in sins else final
    say({"type": "STATE", "value": value}, "" if "no newline" in sins else "\n")
    if "torn" in sins:
        sys.stdout.write('{"type": "STATE", "val')
    if "leaves a child" in sins:
        subprocess.Popen(["sleep", "20"])
    return None


def put(stream, record, chosen, **more):
    kept = record if "all properties" in sins else {name: value for name, value in record.items() if name in chosen}
    if "drops keys" in sins and stream == "orders" and len(chosen) < len(ORDERS["properties"]):
        kept.pop("id", None)
    if "undeclared" in sins or ("half undeclared" in sins and record["id"] % 2):
        kept["extra"] = 1
    say({"type": "RECORD", "stream": stream, "record": kept, **more})


def check_term(bookmarks, current):
    if not term:
        return
    if "torn on sigterm" in sins:
        sys.stdout.write('{"type": "RECORD", "str')
        sys.stdout.flush()
    elif "rash on sigterm" in sins:
        bookmarks = {"orders": {"updated_at": when(COUNT)}}
    say({"type": "STATE", "value": {"bookmarks": bookmarks, "currently_syncing": current}})
    sys.exit(0 if "zero on sigterm" in sins else 143)


def when(number):
    if "number marks" in sins:
        return number
    if "decimal marks" in sins:
        return f"{number}.50"
    if "naive times" in sins:
        return f"2026-11-20T{number // 60 % 24:02}:{number % 60:02}:00"
    return f"2026-11-{20 + number // 1440}T{number // 60 % 24:02}:{number % 60:02}:00Z"


def count(stream, number):
    if not sins & {"no metrics", "anonymous"}:
        number += "miscounts" in sins
        metric = {"type": "counter", "metric": "record_count", "value": number, "tags": {"endpoint": stream}}
        log("INFO", f"METRIC: {json.dumps(metric)}")
        if stream == "orders" and "no timers" not in sins:
            timer = {"type": "timer", "metric": "http_request_duration", "value": 0.1, "tags": {}}
            log("INFO", f"METRIC: {json.dumps(timer)}")


def orders(chosen, bookmarks, config):
    if "anonymous" not in sins:
        log("INFO", "syncing orders")
    since = bookmarks.get("orders", {}).get("updated_at", "") if "ignores state" not in sins else ""
    start = since or (config.get("start_date", "") if "ignores start_date" not in sins else "")
    since_number = Decimal(since if since != "" else -1) if sins & {"number marks", "decimal marks"} else None
    schema = {**ORDERS, "type": "thing"} if "odd schema" in sins else ORDERS
    keys = ["number"] if "other keys" in sins else ["id"]
    marks = {} if "no bookmark properties" in sins else {"bookmark_properties": ["updated_at"]}
    if "lost bookmark property" in sins:
        marks = {"bookmark_properties": ["changed"]}
    opening = {"type": "SCHEMA", "stream": "orders", "schema": schema, "key_properties": keys, **marks}
    if "no key properties" in sins:
        del opening["key_properties"]
    if "late schema" not in sins:
        say(opening)
    numbers = list(range(COUNT))
    if "other rows on resume" in sins and since:
        numbers, start = numbers[: COUNT - len([n for n in numbers if when(n) < since])], ""
    if "unordered" in sins or "unordered at the end" in sins:
        numbers.reverse()
    written, done = 0, bookmarks.get("orders", {}).get("updated_at", "")
    if "unicode" in sins:
        log("INFO", "names: Zo\\u00eb, \U0001f600")
    if "hoards" in sins:
        hoard = [("x" * 1000).upper() + str(number) for number in range(40_000)]
    for number in numbers:
        record = {"id": number, "updated_at": when(number), "note": "n", "price": 1.5}
        if since_number is not None:
            if Decimal(record["updated_at"]) < since_number:
                continue
        elif record["updated_at"] < start or ("exclusive" in sins and since and number < COUNT // 2 + 20):
            continue
        if written >= config.get("most", COUNT):
            break
        if "is killed" in sins and number == 70:
            os.kill(os.getpid(), signal.SIGKILL)
        if "crashes" in sins and number == 70:
            record["nothing"]["at all"]
        spoilt = {**SPOILT, "odd time": {"note": None, "updated_at": str(record["updated_at"]).rstrip("Z")}}
        for sin, changes in spoilt.items():
            if (sin in sins and number == 7) or (f"half {sin}" in sins and number % 2):
                record |= changes
        if "unused" in sins:
            del record["note"]
        if "valueless" in sins and number == 7:
            del record["updated_at"]
        if "prints" in sins and number == 7:
            print("seven")
        if "odd type" in sins and number == 7:
            say({"type": "THING", "stream": "orders"})
        if "no record" in sins and number == 7:
            say({"type": "RECORD", "stream": "orders"})
        if "logs each" in sins:
            log("INFO", f"order {number} of many")
            log("INFO", f"order {number} is written")
        for each in range(200 if "hoards" in sins else 0):
            more = {**record, "id": number * 200 + each, "note": hoard[each]}
            say({"type": "RECORD", "stream": "orders", "record": more})
        put("orders", record, chosen)
        if ("twice" in sins and number == 7) or ("nearly all twice" in sins and number > 7):
            put("orders", record, chosen)
        written += 1
        if "late schema" in sins and written == 1:
            say(opening)
        if since_number is not None:
            done = record["updated_at"]
        else:
            done = max(done, record.get("updated_at", ""))
        if not sins & {"stuck bookmark", "partitioned state"} and "unordered at the end" not in sins:
            bookmarks["orders"] = {"updated_at": "2026-11-21T00:00:00Z" if "bookmark of now" in sins else done}
        if written % 50 == 0 and "many orders and quiet" not in sins and "unordered at the end" not in sins:
            current = {} if "no currently_syncing" in sins else {"currently_syncing": "orders"}
            value = {"bookmarks": bookmarks, **current}
            if "rash state" in sins:
                value = {**value, "bookmarks": {"orders": {"updated_at": when(number + 5)}}}
            say({"type": "STATE", "value": value})
        check_term(bookmarks, "orders")
    if "unordered at the end" in sins:
        bookmarks["orders"] = {"updated_at": done}
    if "hasty bookmark" in sins:
        bookmarks["orders"] = {"updated_at": when(COUNT - 20)}
    count("orders", written)
    log("INFO", "synced orders" if "anonymous" not in sins else "synced")


def shops(chosen, bookmarks):
    if "anonymous" not in sins:
        log("INFO", "syncing shops")
    say({"type": "SCHEMA", "stream": "shops", "schema": SHOPS, "key_properties": ["id"]})
    version = {} if not sins & {"versions", "versions at both ends", "no activation"} else {"version": 5}
    if "versions at both ends" in sins:
        say({"type": "ACTIVATE_VERSION", "stream": "shops", "version": 5})
    number = -1
    for number in range(0 if "empty" in sins else 20):
        put("shops", {"id": number % 10 if "doubled keys" in sins else number, "name": "s"}, chosen, **version)
        check_term(bookmarks, "shops")
    if sins & {"versions", "versions at both ends"}:
        say({"type": "ACTIVATE_VERSION", "stream": "shops", "version": 5})
    count("shops", number + 1)


if "hangs" in sins and asked.catalog:
    time.sleep(60)
if "binary" in sins and asked.catalog:
    sys.stdout.buffer.write(b"\xff\xfe\x00\x01\n" * 5)
if "endless invalid" in sins and asked.catalog:
    while True:
        print("y" * 100)
if "endless line" in sins and asked.catalog:
    while True:
        sys.stdout.write("y" * 100_000)
if "loud" in sins and asked.catalog:
    for _ in range(400):
        os.write(2, b"INFO " + b"z" * 100_000 + b"\n")
main()
