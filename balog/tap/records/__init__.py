"""From a source's record to a line on stdout: selection, coercion, validation and quarantine."""

from balog.tap.records.output import Output, RecordWriter
from balog.tap.records.record_quarantine import MAX_QUARANTINED, RecordQuarantine, default_quarantine
from balog.tap.records.times import EpochUnit
from balog.tap.records.transformer import Policy, Transformer

__all__ = [
    "MAX_QUARANTINED",
    "EpochUnit",
    "Output",
    "Policy",
    "RecordQuarantine",
    "RecordWriter",
    "Transformer",
    "default_quarantine",
]
