"""``balog test``: run test cases of broker configs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from balog.broker.cases import failures, load_cases
from balog.cli.shared import options
from balog.common.errors import ConfigError


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="CASES …", type=options.FilePath(path_type=Path))
def command(paths: tuple[Path, ...]) -> None:
    """Run test cases of broker configs: sample input and expected output.

    CASES is a file or a folder of *.json files. No sink, spool or state is used. Exits with 1 if a case fails.

    \b
    cases.json:
      {"config": "broker.json",
       "cases": [{
         "name": "e-mail addresses are masked",
         "input":  [{"type": "RECORD", "stream": "users", "record": {"id": 1, "email": "a@example.com"}},
                    {"type": "LOG", "level": "INFO", "value": {"message": "hello"}}],
         "output": [{"type": "RECORD", "stream": "users", "record": {"id": 1, "email": null}}],
         "events": [[{"payload": {"message": "hello"}}]]
       }]}
    """
    failed = passed = 0
    for path in _files(paths):
        config, cases = load_cases(path)
        for case in cases:
            try:
                problems = failures(config, case)
            except ConfigError as error:
                raise ConfigError(error.reason, error.source or str(path), error.path) from None
            click.echo(f"{'FAILED' if problems else 'ok':8}{path}: {case.name}")
            for problem in problems:
                click.echo(f"        {problem}")
            failed, passed = failed + bool(problems), passed + (not problems)
    click.echo(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def _files(paths: tuple[Path, ...]) -> list[Path]:
    files = []
    for path in paths:
        case_files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not case_files:
            raise ConfigError("has no *.json files with cases", str(path))
        files += case_files
    return files
