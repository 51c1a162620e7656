"""Install packages of ``plugins/`` and ``examples/`` as their users do, without a download."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def python_with(folder: Path, *packages: Path) -> Path:
    """Return the Python of a new environment with these packages, and with the packages of this one."""
    venv.create(folder / "env", symlinks=True)
    python = folder / "env" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (folder / "env" / "lib" / version / "site-packages" / "shared.pth").write_text(line)
    sources = [shutil.copytree(package, folder / package.name) for package in packages]
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*install, *sources], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return python
