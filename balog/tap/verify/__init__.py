"""``balog tap verify``: does a tap, of this toolkit or not, keep to Singer's specification and practices?

``running`` runs the tap as a pipeline would, ``reading`` notes what it wrote, ``trials`` has all runs, ``rules`` look
at them, ``report`` scores. In tests, see ``balog.tap.verify.testing``.
"""

from balog.tap.verify.finding import Finding, Rule
from balog.tap.verify.options import Options
from balog.tap.verify.report import Report
from balog.tap.verify.verifying import verify

__all__ = ["Finding", "Options", "Report", "Rule", "verify"]
