"""``balog tap``: prove that a tap, of balog's toolkit or not, keeps to Singer's practices."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.group()
def command() -> None:
    """Prove that a tap keeps to Singer's practices."""
