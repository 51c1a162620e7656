"""``balog tap verify``: does a tap, of this toolkit or not, keep to Singer's specification and practices?

``running`` runs the tap as a pipeline would, ``reading`` notes what it wrote, ``trials`` has all runs, ``rules`` look
at them, ``report`` scores. In tests, see ``balog.verify.testing``.
"""

from balog.verify.finding import Finding, Rule
from balog.verify.options import Options
from balog.verify.report import Report
from balog.verify.verifying import verify

__all__ = ["Finding", "Options", "Report", "Rule", "verify"]
