"""Sources of schemas: files, functions, types, and records; resolving of references; flattening.

Each part works without the rest of a tap: ``resolve`` and ``flatten`` take a dict; ``check`` rejects invalid ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.common.lazy_exports import deferred
from balog.tap.schema.documents import check
from balog.tap.schema.references import flatten, resolve
from balog.tap.schema.sources import SchemaSource, generated, json_file, json_folder, schema_of

if TYPE_CHECKING:
    from balog.tap.schema.inference import infer

__all__ = ["SchemaSource", "check", "flatten", "generated", "infer", "json_file", "json_folder", "resolve", "schema_of"]

__getattr__ = deferred(globals(), {"infer": "balog.tap.schema.inference"})
