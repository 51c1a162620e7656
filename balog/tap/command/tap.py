"""``Tap``: a tap's declarations and its command line."""

from __future__ import annotations

from collections.abc import Sequence

from balog.tap.definition import TapDefinition


class Tap(TapDefinition):
    """A Singer tap: its streams, client, schemas and metadata, run as a program.

    See ``TapDefinition`` for its arguments and attributes.

    ::

        tap = Tap("tap-cool")

        @tap.stream("contacts", key_properties=["id"])
        def contacts(client):
            yield from client.contacts()

        tap.run()
    """

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Run the command line of the tap, and end the process.

        Args:
            arguments: those of the command line; None means those of the process.

        Raises:
            SystemExit: always, with the exit code; see ``balog.tap.command.run``.
        """
        from balog.tap.command import run

        run(self, arguments)
