"""May a new version of a type follow an old one? Judged for JSON, for protobuf's wire, and for the tables."""

from balog.registry.comparing.judging import compare, compare_history, least_version
from balog.registry.comparing.verdict import Bump, Finding, Layer, Mode, Verdict

__all__ = ["Bump", "Finding", "Layer", "Mode", "Verdict", "compare", "compare_history", "least_version"]
