"""Replace secrets and personal data before an event is written, found by their keys or their form."""

from __future__ import annotations

from balog.common.redaction.config import from_config
from balog.common.redaction.redactor import Redactor, default_names
from balog.common.redaction.structure import SecretFinding

__all__ = ["Redactor", "SecretFinding", "default_names", "from_config"]
