"""``.ci/house.py``, ruff's complexity and the import contracts report what is planted, each in a folder of its own."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.ci_scripts import ci_script

ROOT = Path(__file__).resolve().parents[1]
CLEAN = '"""A module."""\n\n\ndef read_line(line: str) -> str:\n    """Return the line."""\n    return line\n'


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The checker, for the files of a temporary folder."""
    module = ci_script("house")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def problems(house: ModuleType, path: str, text: str) -> list[str]:
    """Return the problems of a file with this text."""
    file = house.ROOT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return list(house.check(file))


class TestWords:
    @pytest.mark.parametrize(
        ("path", "text", "expected"),
        [
            ("reader.py", CLEAN, ""),
            ("reader.py", "dead_letters = 1  # dead letters\n", ""),
            ("reader.py", "class OrderDesk:\n    pass\n", ":1: OrderDesk: "),
            ("reader.py", "def fill(crew: int) -> None:\n    pass\n", ":1: crew: "),
            ("reader.py", "told = 1\n", ":1: told: "),
            ("reader.py", "import json as letters\n", ":1: letters: "),
            ("reader.py", "self.salvaged = 1\n", ":1: salvaged: "),
            ("reader.py", "given_by = 1\n", ":1: given_by is source_stream"),
            ("reader.py", "x = 1  # waits in its lane\n", ":1: 'lane' is sink worker, topic writer or stream sync"),
            ("pump.py", CLEAN, ": name the file without 'pump': delivery loop"),
            (
                "reader.py",
                CLEAN.replace("Return the line", "Give the line back"),
                ":4: read_line: begin the docstring with a verb such as Return or Raise",
            ),
        ],
    )
    def test_a_word_in_a_file(self, house: ModuleType, path: str, text: str, expected: str) -> None:
        found = problems(house, f"balog/room/{path}", text)

        assert len(found) == bool(expected)
        assert all(problem.startswith(f"balog/room/{path}{expected}") for problem in found)

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("The error is told once.", "'told' is reported"),
            ("A row that can't be told apart.", None),
            ("Its `trouble` is empty.", None),
            ("A trouble with the sink.", "'trouble' is error"),
            ("All pages but for one.", "'but for' is except for"),
            ("A payload that is none.", "'that is none' is not one"),
            ("Values that are None.", None),
            ("It ends. Of two readers, one waits.", "'. Of two' is an inverted opening"),
            ("Two of the readers wait: of a kind.", None),
            ("It waits, so.", "', so.' is a sentence that begins with its subject"),
            ("The crew waits.", "'crew' is worker pool"),
        ],
    )
    def test_a_phrase_in_a_page(self, house: ModuleType, line: str, problem: str | None) -> None:
        assert problems(house, "docs/page.md", line) == ([f"docs/page.md:1: {problem}"] if problem else [])


class TestSizes:
    @pytest.mark.parametrize(("lines", "count"), [(58, 0), (59, 0), (60, 1)])
    def test_a_function_has_at_most_60_lines(self, house: ModuleType, lines: int, count: int) -> None:
        body = "    value = 1\n" * lines

        found = problems(house, "balog/room/reader.py", f'def read() -> None:\n    """Read."""\n{body}')

        assert len(found) == count
        assert all("read has 61 lines of code, more than 60" in problem for problem in found)

    def test_a_class_has_at_most_350_lines(self, house: ModuleType) -> None:
        (problem,) = problems(house, "balog/room/reader.py", "class Reader:\n" + "    value = 1\n" * 350)

        assert "Reader has 351 lines of code, more than 350" in problem

    @pytest.mark.parametrize(("lines", "expected"), [(3, []), (4, ["balog/tap has 4 lines of code, more than 3"])])
    def test_a_room_has_at_most_its_lines(
        self, house: ModuleType, monkeypatch: pytest.MonkeyPatch, lines: int, expected: list[str]
    ) -> None:
        monkeypatch.setattr(house, "ROOM_LINES", {"balog/tap": 3})
        problems(house, "balog/tap/reader.py", '"""Read."""\n\n' + "value = 1\n" * lines)

        assert list(house.large_rooms()) == expected

    def test_a_folder_has_at_most_20_entries(self, house: ModuleType) -> None:
        for number in range(21):
            problems(house, f"balog/room/reader_{number}.py", '"""Read."""\n')
        assert list(house.crowded_folders()) == ["balog/room has 21 entries, more than 20"]

    def test_ruff_reports_a_complexity_above_20(self, tmp_path: Path) -> None:
        pytest.importorskip("ruff")
        branches = "".join(f"    if x == {number}:\n        return {number}\n" for number in range(20))
        code = f'"""A module."""\n\n\ndef read(x):\n    """Read."""\n{branches}    return 0\n'
        (tmp_path / "reader.py").write_text(code)

        done = run("-m", "ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml"), ".", folder=tmp_path)

        assert done.returncode == 1
        assert "`read` is too complex (21 > 20)" in done.stdout


def test_a_class_name_of_two_rooms(house: ModuleType) -> None:
    for room in ("sinks", "topics"):
        problems(house, f"balog/{room}/worker.py", "class Worker:\n    pass\n\n\nclass _Loop:\n    pass\n")

    assert list(house.repeated_classes(["balog"])) == [
        "Worker is the name of several classes: balog/sinks/worker.py, balog/topics/worker.py"
    ]


def test_the_command_prints_problems_and_fails(
    house: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problems(house, "balog/room/reader.py", CLEAN)
    monkeypatch.setattr(sys, "argv", ["house.py", "balog"])
    assert house.main() == 0
    problems(house, "balog/room/crew.py", CLEAN)

    assert house.main() == 1
    assert capsys.readouterr().out == "balog/room/crew.py: name the file without 'crew': worker pool\n"


class TestImportContracts:
    CYCLE = "from tiny.room.{} import name\n"

    def lint(self, folder: Path, modules: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        """Check a package with the contract of this project that forbids cycles inside a room."""
        pytest.importorskip("importlinter")
        contract = re.search(r'name = "no cycles inside a room"\ntype = "\w+"\n', (ROOT / "pyproject.toml").read_text())
        assert contract is not None
        room = folder / "tiny" / "room"
        room.mkdir(parents=True)
        for path in (folder / "tiny", room):
            (path / "__init__.py").touch()
        for name, text in modules.items():
            (room / f"{name}.py").write_text(text)
        (folder / "pyproject.toml").write_text(
            '[tool.importlinter]\nroot_package = "tiny"\n\n[[tool.importlinter.contracts]]\n'
            f'{contract[0]}ancestors = ["tiny.room"]\n'
        )
        command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
        return run("-c", command, "--no-cache", "--no-logo", folder=folder)

    @pytest.mark.parametrize(("first", "verdict"), [(CYCLE.format("writer"), "BROKEN"), ("", "KEPT")])
    def test_a_cycle_inside_a_room(self, tmp_path: Path, first: str, verdict: str) -> None:
        done = self.lint(tmp_path, {"reader": "name = 1\n" + first, "writer": self.CYCLE.format("reader")})

        assert done.returncode == (verdict == "BROKEN"), done.stdout + done.stderr
        assert f"no cycles inside a room {verdict}" in done.stdout


def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run this Python in a folder."""
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
