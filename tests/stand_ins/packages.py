"""Packages with one module and entry points, installed into a folder without pip."""

from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"


def install(folder: Path, name: str, code: str, group: str, *entry_points: str) -> None:
    """Write the module and its metadata; the folder belongs into ``PYTHONPATH``."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "\n".join(entry_points) + "\n")


def install_ytsaurus(folder: Path) -> None:
    """Install the plug-in balog-ytsaurus; as ``install``."""
    code = (PLUGINS / "balog-ytsaurus" / "balog_ytsaurus.py").read_text()
    install(folder, "balog_ytsaurus", code, "balog.sinks", "ytsaurus = balog_ytsaurus:YTsaurusSinkConfig")
