"""May a new version of a type follow an old one? Judged for JSON, for protobuf's wire, and for the tables."""

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
    "least_version",
]
