"""Log lines of any program on stderr: their dialects, tracebacks and crash reports, as events.

``dialects`` names the form of a line; ``stderr`` joins the lines of one record.
"""

from balog.log_lines.stderr import LineAssembler

__all__ = ["LineAssembler"]
