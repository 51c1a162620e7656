"""A tap's command line: ``--config --state --catalog --discover --about --out-file --version``."""

from balog.tap.command.program import run

__all__ = ["run"]
