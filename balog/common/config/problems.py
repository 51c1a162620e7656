"""All problems of a configuration at once, each with its path and what is expected.

msgspec decodes strictly and stops at the first problem. This module walks the same structs and continues.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from balog.common.config.tagged_config import TaggedConfig, convert
from balog.common.errors import BalogError, ConfigError, split_refusal
from balog.common.text import printable, suggest

UNKNOWN_FIELD = re.compile(r"there is no field '([^']+)'")
"""The reason of a field that is not known. Its path is that of the object."""

_MAX_PROBLEMS = 100


def problems(document: Any, type: Any, source: str = "") -> list[ConfigError]:
    """Return the problems of a document.

    Args:
        document: plain data, as JSON decodes.
        type: a msgspec struct, or any type that msgspec knows.
        source: the file that it came from, for the errors.

    Returns:
        At most 100 errors in the document's order, each with its JSONPath; none if msgspec accepts the document.
    """
    errors = []
    for reason, path in _walk(document, type, "$"):
        errors.append(ConfigError(reason, source, path))
        if len(errors) == _MAX_PROBLEMS:
            break
    return errors


def intact(document: Any, kind: Any) -> tuple[Any, list[str], Callable[[str], str]]:
    """Return a config without its invalid parts: fields, and items of its top-level lists.

    With it, the valid parts can be built, and their problems reported together with those of the other parts.

    Returns:
        The config, or None if it cannot be decoded without these parts; the paths of the parts left out; and a function
        from a path in the config to the one in the document.
    """
    paths = [error.path for error in problems(document, kind)]
    if not paths:
        return convert(document, kind), [], str
    if not isinstance(document, Mapping):
        return None, paths, str
    kept, left_out, numbers = dict(document), list[str](), dict[str, list[int]]()
    for name, value in document.items():
        member_path = f"$.{printable(str(name)[:100])}"
        if not any(_is_within(path, member_path) for path in paths):
            continue
        if isinstance(value, list) and member_path not in paths:
            bad = {n for n in range(len(value)) if any(_is_within(path, f"{member_path}[{n}]") for path in paths)}
            numbers[member_path] = [n for n in range(len(value)) if n not in bad]
            kept[name] = [value[n] for n in numbers[member_path]]
            left_out += (f"{member_path}[{n}]" for n in bad)
        else:
            del kept[name]
            left_out.append(member_path)
    shape = _shape(kind)
    if isinstance(shape, type) and issubclass(shape, Struct) and "$" in paths:
        known = {field.encode_name for field in msgspec.structs.fields(shape)} | {shape.__struct_config__.tag_field}
        kept = {name: value for name, value in kept.items() if name in known}

    def original(path: str) -> str:
        match = _ITEM.match(path)
        if match is None or match[1] not in numbers or int(match[2]) >= len(numbers[match[1]]):
            return path
        return f"{match[1]}[{numbers[match[1]][int(match[2])]}]{path[match.end() :]}"

    try:
        return convert(kept, kind), left_out, original
    except msgspec.ValidationError:
        return None, left_out, original


def _is_within(path: str, parent: str) -> bool:
    return path == parent or path.startswith((f"{parent}.", f"{parent}["))


_ITEM = re.compile(r"(\$\.\w+)\[(\d+)\]")


def _walk(value: Any, kind: Any, path: str) -> Iterator[tuple[str, str]]:
    shape = _shape(kind)
    is_tagged = isinstance(shape, type) and issubclass(shape, TaggedConfig) and not issubclass(shape, Struct)
    if is_tagged or get_origin(shape) in (Union, types.UnionType):
        chosen = _choose_tagged(value, shape) if is_tagged else _choose(value, get_args(shape))
        if isinstance(chosen, str):
            yield chosen, path
            return
        shape = _shape(chosen)
        kind = chosen
    inner = list(_walk_inside(value, shape, path))
    yield from inner
    if not inner:  # constraints on the whole value
        yield from _refusal(value, kind, path)


def _walk_inside(value: Any, shape: Any, path: str) -> Iterator[tuple[str, str]]:
    origin = get_origin(shape)
    if isinstance(shape, type) and issubclass(shape, Struct) and isinstance(value, Mapping):
        yield from _walk_struct(value, shape, path)
    elif origin in (list, tuple) and isinstance(value, list):  # a tuple's items are all of one type here
        for number, item in enumerate(value):
            yield from _walk(item, get_args(shape)[0], f"{path}[{number}]")
    elif origin is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, get_args(shape)[1], f"{path}.{printable(str(key)[:100])}")


def _walk_struct(value: Mapping[str, Any], kind: type[Struct], path: str) -> Iterator[tuple[str, str]]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    tag_field = kind.__struct_config__.tag_field
    for name, item in value.items():
        if name in fields:
            yield from _walk(item, fields[name].type, f"{path}.{name}")
        elif kind.__struct_config__.forbid_unknown_fields and name != tag_field:
            yield f"there is no field {name!r}{suggest(name, sorted(fields))}", path
    for name, field in fields.items():
        if field.required and name not in value:
            yield f"the field {name!r} is missing", path


def _refusal(value: Any, kind: Any, path: str) -> Iterator[tuple[str, str]]:
    reason = getattr(_shape(kind), "REFUSES_TEXT", "")
    if reason and isinstance(value, str):
        yield reason, path
        return
    if value not in get_args(_shape(kind)) and (reason := _words(value, [kind], ())):
        yield reason, path
        return
    try:
        convert(value, kind)
    except msgspec.ValidationError as error:
        reason, subpath = split_refusal(error)
        yield reason, path + subpath.removeprefix("$")


def _choose(value: Any, kinds: Sequence[Any]) -> Any:
    """Return the member of a union that a value means, or a text that says why there is none."""
    structs = [shape for kind in kinds if isinstance(shape := _shape(kind), type) and issubclass(shape, Struct)]
    if isinstance(value, Mapping) and structs:
        field = structs[0].__struct_config__.tag_field
        if field is None:
            return structs[0]
        tagged = {str(kind.__struct_config__.tag): kind for kind in structs}
        tag = _tag(value, field, tagged)
        return tagged.get(tag, tag)
    container = list if isinstance(value, list) else dict if isinstance(value, Mapping) else None
    for kind in kinds:
        if container is not None and get_origin(_shape(kind)) is container:
            return kind
    try:
        convert(value, Union[tuple(kinds)])  # noqa: UP007
    except msgspec.ValidationError as error:
        return _words(value, kinds, structs) or split_refusal(error)[0]
    return Any


def _choose_tagged(value: Any, kind: type[TaggedConfig]) -> Any:
    """Return the struct that a tagged config means, or a text that says why there is none."""
    if not isinstance(value, Mapping):
        return kind
    try:
        return kind.struct_of(str(value.get("type")))
    except KeyError:
        return _tag(value, "type", kind.known_tags())
    except BalogError as error:
        return str(error)


def _tag(value: Mapping[str, Any], field: str, known: Collection[str]) -> str:
    """Return the tag of a union's member, or a text that says why it is none."""
    if field not in value:
        return f"the field {field!r} is missing; there are {', '.join(sorted(known))}"
    tag = value[field]
    if isinstance(tag, str) and tag in known:
        return tag
    return f"there is no {field} {str(tag)[:40]!r}{suggest(str(tag), sorted(known))}"


def _words(value: Any, kinds: Sequence[Any], structs: Sequence[type[Struct]]) -> str:
    """Return the words that a union accepts instead of a wrong one; "" if the union has no words."""
    words = [word for kind in kinds if get_origin(_shape(kind)) is Literal for word in get_args(_shape(kind))]
    if not words or not isinstance(value, str):
        return ""
    reason = f"there is no {value[:40]!r} here{suggest(value, sorted(words))}"
    field = structs[0].__struct_config__.tag_field if structs else None
    if field is None:
        return reason
    tags = sorted(str(kind.__struct_config__.tag) for kind in structs)
    if value in tags:
        return f'{value!r} needs options; write {{"{field}": "{value}", …}}'
    return f'{reason}; or write {{"{field}": …}} with {", ".join(tags)}'


def _shape(kind: Any) -> Any:
    """Return a type without what is annotated."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind
