"""The pictures of the documentation are made from the program as it is."""

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

from tests.ci_scripts import ci_script

pictures = ci_script("pictures")

ROOT = Path(__file__).resolve().parents[2]


def size_of(picture: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_the_committed_picture_is_small() -> None:
    picture = ROOT / "docs" / "pictures" / "report.png"

    assert size_of(picture) == (pictures.SIZE["width"], pictures.SIZE["height"])
    assert picture.stat().st_size < 200_000


@pytest.mark.service
def test_the_report_s_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (shutil.which("chromium") or shutil.which("chromium-browser")):
        pytest.skip("chromium is not installed")
    shown: list[str] = []
    take = pictures.take

    def take_and_keep(page: Path, picture: Path) -> Any:
        shown.append(page.read_text(encoding="utf-8"))
        return take(page, picture)

    monkeypatch.setattr(pictures, "take", take_and_keep)
    monkeypatch.setattr("sys.argv", ["pictures.py", str(tmp_path)])
    pictures.main()

    assert size_of(tmp_path / "report.png") == (pictures.SIZE["width"], pictures.SIZE["height"])
    for planted in ("Column amount is missing in the answer", "tap-orders", "Slower", "charges"):
        assert planted in shown[0]
