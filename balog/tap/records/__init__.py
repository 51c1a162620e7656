"""From a source's record to a line on stdout: selection, coercion, what happens to a record that breaks its schema."""

from balog.tap.records.output import Output
from balog.tap.records.transformer import Policy, Transformer

__all__ = ["Output", "Policy", "Transformer"]
