"""From a source's record to a line on stdout: selection, coercion, what happens to a record that breaks its schema."""

from balog.tap.records.output import Output, RecordWriter
from balog.tap.records.quarantine import Quarantine, default_quarantine
from balog.tap.records.transformer import Policy, Transformer

__all__ = ["Output", "Policy", "Quarantine", "RecordWriter", "Transformer", "default_quarantine"]
