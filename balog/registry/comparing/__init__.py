"""Compares two versions of a type: compatibility of the JSON and of protobuf's wire format."""

from balog.registry.comparing.child import compare_in_child
from balog.registry.comparing.comparison import compare, compare_history, least_version
from balog.registry.comparing.verdict import Bump, CompatibilityFinding, CompatibilityReport, Layer, Mode

__all__ = [
    "Bump",
    "CompatibilityFinding",
    "CompatibilityReport",
    "Layer",
    "Mode",
    "compare",
    "compare_history",
    "compare_in_child",
    "least_version",
]
