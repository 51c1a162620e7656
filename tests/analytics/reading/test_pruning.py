"""Files are left out by time only where they can hold nothing of it."""

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from balog.analytics.reading.discovery import find_files
from balog.analytics.reading.inputs import read_inputs
from balog.common.errors import ConfigError


def put(root: Path, day: int, first: str = "", last: str = "") -> None:
    """Put a file into the folder of a day in January, with a manifest when it is said from when to when it reaches."""
    path = root / "t" / f"date=2026-01-{day:02d}" / f"f{day}.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.touch()
    if first:
        times = {"min_timestamp": f"2026-01-{first}Z", "max_timestamp": f"2026-01-{last}Z"}
        manifest = root / "t" / "_manifest" / f"f{day}.json"
        manifest.parent.mkdir(exist_ok=True)
        manifest.write_text(json.dumps({"file": f"date=2026-01-{day:02d}/{path.name}", "events": 1, **times}))


def days(root: Path, since: str = "", until: str = "") -> list[int]:
    inputs = read_inputs({"path": str(root), **{k: v for k, v in (("since", since), ("until", until)) if v}})
    return sorted(int(Path(file.path).name[1:].partition(".")[0]) for file in inputs.files())


def test_folders_of_days_far_from_the_time_are_left_out(tmp_path: Path) -> None:
    for day in range(1, 11):
        put(tmp_path, day)
    assert days(tmp_path) == list(range(1, 11))
    assert days(tmp_path, since="2026-01-05T12:00:00Z") == [4, 5, 6, 7, 8, 9, 10]
    assert days(tmp_path, until="2026-01-05T12:00:00Z") == [1, 2, 3, 4, 5, 6]
    assert days(tmp_path, "2026-01-05T01:00:00+02:00", "2026-01-05T01:30:00+02:00") == [3, 4, 5]


def test_a_manifest_says_whether_a_file_near_the_time_is_wanted(tmp_path: Path) -> None:
    put(tmp_path, 4, "04T00:00:00", "04T23:59:59")
    put(tmp_path, 5, "05T00:00:00", "05T11:59:59")
    put(tmp_path, 6, "04T10:00:00", "06T11:59:59")
    put(tmp_path, 7)
    assert days(tmp_path, since="2026-01-05T12:00:00Z") == [6, 7]
    assert days(tmp_path, since="2026-01-05T11:59:59Z") == [5, 6, 7]
    assert days(tmp_path, until="2026-01-05T00:00:00Z") == [4, 6]


def test_a_damaged_manifest_and_a_file_in_no_folder_of_a_day_leave_nothing_out(tmp_path: Path) -> None:
    put(tmp_path, 5, "05T00:00:00", "05T11:59:59")
    (tmp_path / "t/_manifest/f5.json").write_text("{")
    (tmp_path / "f99.jsonl").touch()
    (tmp_path / "date=today").mkdir()
    (tmp_path / "date=today" / "f98.jsonl").touch()
    assert days(tmp_path, since="2026-01-05T12:00:00Z") == [5, 98, 99]


def test_the_ends_of_time_are_no_trouble(tmp_path: Path) -> None:
    put(tmp_path, 5)
    for end in (datetime.min, datetime.max.replace(tzinfo=timezone.utc)):
        assert len(find_files(str(tmp_path), since=datetime.min, until=end)) == (end.year > 1)


def test_a_narrower_time_wins(tmp_path: Path) -> None:
    inputs = read_inputs({"path": str(tmp_path), "since": "2026-01-05"})
    early, late = (datetime(2026, month, 1, tzinfo=timezone.utc) for month in (1, 2))
    assert inputs.narrow(early, None).since == inputs.since
    assert inputs.narrow(late, late)[3:5] == (late, late)


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="option since is 'yesterday'"):
        days(tmp_path, since="yesterday")
