"""Load a JSON config strictly into a msgspec struct, with the path of each error."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

import msgspec

from balog.duplicate_keys import find_duplicate_keys
from balog.errors import ConfigError, ConfigProblems, complain, split_refusal
from balog.tagged_config import convert, union_of

__all__ = ["load", "load_env", "read", "write_schema"]

MAX_CONFIG_BYTES = 4 * 1024 * 1024
_MAX_TWICE = 20

T = TypeVar("T")


def load(path: str | os.PathLike[str], type: type[T], max_bytes: int = MAX_CONFIG_BYTES) -> T:
    """Load a config file of at most ``max_bytes``. A top-level ``$schema``, for editors, is ignored.

    Raises:
        ConfigError: the file cannot be read, or is not JSON (with line and column).
        ConfigProblems: it has duplicate keys, or does not match ``type`` (each with its path in the file).
    """
    document, found = read(path, max_bytes)
    rename_deprecated_keys(document, type, str(path))
    if not found:
        try:
            config: T = convert(document, type)
            return config
        except msgspec.ValidationError as error:
            refusal = error
    from balog.problems import problems

    found += problems(document, type, str(path))
    if not found:
        reason, where = split_refusal(refusal)
        found = [ConfigError(reason, str(path), where)]
    raise ConfigProblems(found)


def read(
    path: str | os.PathLike[str],
    max_bytes: int = MAX_CONFIG_BYTES,
    float_hook: Callable[[str], Any] | None = None,
) -> tuple[Any, list[ConfigError]]:
    """Read a JSON file as plain data, without a top-level ``$schema``.

    Args:
        path: the file.
        max_bytes: the largest size of the file.
        float_hook: converts the text of each number with a fraction or an exponent; None for floats.

    Returns:
        The data, and a problem for each duplicate key and for a ``$schema`` that is not a string.

    Raises:
        ConfigError: the file cannot be read, is too large, or is not JSON (with line and column).
    """
    source, data = str(path), _contents(path, max_bytes)
    try:
        document = msgspec.json.Decoder(float_hook=float_hook).decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8: {error.reason}{_place(data[: error.start])}", source) from None
    except msgspec.DecodeError as error:
        raise ConfigError(_syntax(data.removeprefix(_BOM), str(error)), source) from None
    except RecursionError:
        raise ConfigError("nested too deep to be a config", source) from None
    found = [
        ConfigError("this key is there twice; want it once", source, place)
        for place in islice(find_duplicate_keys(data.removeprefix(_BOM)), _MAX_TWICE)
    ]
    schema = document.pop("$schema", "") if isinstance(document, dict) else ""
    if not isinstance(schema, str):
        found.append(ConfigError(f"want the address of a schema, not {type(schema).__name__}", source, "$.$schema"))
    return document, found


def rename_deprecated_keys(document: Any, type: Any, source: str) -> None:
    """Rename the old keys of a document to those of its struct, which names them in ``DEPRECATED_KEYS``.

    One line on stderr reports each old key. A document that has both is left as it is: the old key is then unknown.
    """
    for old, new in getattr(type, "DEPRECATED_KEYS", {}).items():
        if isinstance(document, dict) and old in document and new not in document:
            document[new] = document.pop(old)
            report_deprecated(source, repr(old), repr(new))


@lru_cache
def report_deprecated(source: str, old: str, new: str) -> None:
    """Write one line about an old name to stderr, once for each source."""
    complain(f"{source}: {old} is deprecated and will be removed; write {new}")


def load_env(path: str | os.PathLike[str], names: Collection[str]) -> dict[str, str]:
    """Read a file of lines ``NAME=value``.

    Empty lines, ``#`` comments, ``export`` and quotes around a value are allowed.

    Raises:
        ConfigError: the file cannot be read, a line has another form, or a name is not one of ``names``.
    """
    found = {}
    for number, line in enumerate(_contents(path).decode("utf-8-sig", "replace").splitlines(), 1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in names:
            raise ConfigError(f"want NAME=value, with a name of {', '.join(names)}", str(path), f"line {number}")
        found[name] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return found


def _contents(path: str | os.PathLike[str], max_bytes: int = MAX_CONFIG_BYTES) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", str(path)) from None
    except ValueError as error:  # a path with a null character
        raise ConfigError(f"cannot be read: {error}", repr(str(path))) from None
    if len(data) > max_bytes:
        raise ConfigError(f"larger than {max_bytes} bytes; is this the right file?", str(path))
    return data


_BOM = b"\xef\xbb\xbf"


def _syntax(data: bytes, message: str) -> str:
    """Return msgspec's error with line and column instead of ``(byte 12)``."""
    message = message.removeprefix("JSON is malformed: ")
    reason, _, rest = message.rpartition(" (byte ")
    number = rest.removesuffix(")")
    if not reason or not number.isdigit():
        return f"not JSON: {message[:1].lower()}{message[1:]}{_place(data.rstrip())}"
    return f"not JSON: {reason}{_place(data[: int(number)])}"


def _place(before: bytes) -> str:
    """Return the line and column, both from 1, of the byte after these."""
    text = before.decode("utf-8", "replace")
    return f", line {text.count(chr(10)) + 1} column {len(text) - text.rfind(chr(10))}"


def write_schema(type: type[msgspec.Struct], id: str, title: str) -> bytes:
    """Return the JSON Schema of a config struct, as stored in ``schemas/config``."""
    schema = _schema(type)
    extend = getattr(type, "extend_schema", None)  # for the parts of a config that other structs decode
    if extend is not None:
        extend(schema["$defs"])
    tag = type.__struct_config__.tag_field
    top = schema["$defs"][type.__name__]
    if type.__struct_config__.forbid_unknown_fields:
        top["properties"]["$schema"] = {"type": "string", "description": "The schema of this file, for editors."}
    required = top.get("required", [])
    if tag in required:
        required.remove(tag)  # the file need not declare its own type
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": title}
    return msgspec.json.format(msgspec.json.encode(head | schema), indent=2) + b"\n"


def _schema(type: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a struct; a field of a tagged config takes every struct of its registry."""
    kinds: list[Any] = []

    def note(kind: Any) -> dict[str, Any]:
        kinds.append(kind)
        return {"type": "object"}

    plain = msgspec.json.schema(type, schema_hook=note)
    if not kinds:
        return plain
    unions = [union_of(kind) for kind in kinds]
    chosen = dict(zip(kinds, msgspec.json.schema_components(unions)[0]))
    found, definitions = msgspec.json.schema_components([*unions, type], schema_hook=chosen.__getitem__)
    own = {type.__name__: definitions.pop(type.__name__)}
    return {**found[-1], "$defs": own | definitions}
