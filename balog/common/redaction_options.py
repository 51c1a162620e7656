"""The options of redaction in a config, in a light module, because a logger's start needs no rules."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

_EXTRA = "Added to the built-in ones."


class RedactionOptions(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``balog.common.redaction.Redactor`` as plain data."""

    keys: Annotated[
        list[str] | None,
        Meta(description="Ends of names of keys whose values are secret, in place of the built-in ones."),
    ] = None
    names: Annotated[list[str] | None, Meta(description="Exact names likewise, in place of the built-in ones.")] = None
    expressions: Annotated[
        list[str] | None,
        Meta(description="Regular expressions for names likewise, in place of the built-in ones."),
    ] = None
    patterns: Annotated[
        list[str] | None,
        Meta(description="Regular expressions for secrets in texts, in place of the built-in ones."),
    ] = None
    emails: Annotated[bool, Meta(description="Replace e-mail addresses too.")] = False
    cards: Annotated[bool, Meta(description="Replace card numbers too.")] = False
    extra_keys: Annotated[list[str], Meta(description=f"Exact names. {_EXTRA}")] = []
    extra_suffixes: Annotated[list[str], Meta(description=f"Ends of names. {_EXTRA}")] = []
    extra_expressions: Annotated[list[str], Meta(description=f"Regular expressions for names. {_EXTRA}")] = []
    extra_patterns: Annotated[list[str], Meta(description=f"Regular expressions for texts. {_EXTRA}")] = []
    keep_keys: Annotated[list[str], Meta(description="Exact names that are no secret.")] = []
    keep_suffixes: Annotated[list[str], Meta(description="Ends of names that are no secret.")] = []
    rules: Annotated[list[str], Meta(description="Rules that installed packages add, by name.")] = []
    replacement: Annotated[str, Meta(description="The text that is written in place of a secret.")] = "[redacted]"


REDACTION_SCHEMA: dict[str, Any] = msgspec.json.schema(RedactionOptions)["$defs"]["RedactionOptions"]
"""The JSON Schema of ``RedactionOptions``."""
