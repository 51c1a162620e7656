"""The registry: what each type of payload is, and whether a payload, or a new version, may be.

A type is named by ``cls_type``, a version by SemVer. A store keeps ``TYPE/VERSION.json`` (JSON Schema) or
``TYPE/VERSION.proto`` (protobuf); the types that come with balog are always there.
"""

from balog.registry.registry import (
    IncompatibleError,
    Registry,
    UnknownTypeError,
    UnknownVersionError,
    VersionTakenError,
    make_validator,
    open_registry,
)
from balog.registry.schema import Form, InvalidSchemaError, PayloadValidator, Schema, SchemaViolation

__all__ = [
    "Form",
    "IncompatibleError",
    "InvalidSchemaError",
    "PayloadValidator",
    "Registry",
    "Schema",
    "SchemaViolation",
    "UnknownTypeError",
    "UnknownVersionError",
    "VersionTakenError",
    "make_validator",
    "open_registry",
]
