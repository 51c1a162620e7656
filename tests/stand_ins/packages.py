"""Packages with one module and entry points, installed into a folder without pip."""

import os
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"


def install(folder: Path, name: str, code: str, group: str, *entry_points: str) -> None:
    """Write the module and its metadata; the folder belongs into ``PYTHONPATH``."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    _describe(folder, name, module, group, *entry_points)


def _describe(folder: Path, name: str, module: str, group: str, *entry_points: str) -> None:
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "\n".join(entry_points) + "\n")


def install_sinks(folder: Path) -> str:
    """Install sinks of ``plugins/`` from where their modules are; return what ``PYTHONPATH`` needs."""
    configs = {"clickhouse": "ClickHouseSinkConfig", "otlp": "OtlpSinkConfig", "ytsaurus": "YTsaurusSinkConfig"}
    for name, config in configs.items():
        _describe(folder, f"balog_{name}", f"balog_{name}", "balog.sinks", f"{name} = balog_{name}:{config}")
    return os.pathsep.join([str(folder), *(str(PLUGINS / f"balog-{name}") for name in configs)])
