"""The schema registry: the types of payloads, their versions, validation and compatibility.

``cls_type`` names a type, SemVer a version. A store holds ``TYPE/VERSION.json`` (JSON Schema) or
``TYPE/VERSION.proto`` (protobuf). The types that come with balog are always present.
"""

from balog.registry.listing import UnknownTypeError, UnknownVersionError
from balog.registry.registry import (
    IncompatibleError,
    Registry,
    VersionTakenError,
    check_folder,
    make_validator,
    may_be_folder,
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
    "check_folder",
    "make_validator",
    "may_be_folder",
    "open_registry",
]
