"""The page on monitors: its file is a valid one, and it names each option."""

import re
from pathlib import Path

import msgspec

from balog.watch.config.config_check import load_monitors
from balog.watch.config.monitors import KINDS, MonitorConfig
from tests.documentation import docs_page

PAGE = docs_page("monitors.md").read_text(encoding="utf-8")


def test_its_file_is_valid_and_has_a_monitor_of_each_kind_in_the_stream(tmp_path: Path) -> None:
    block = re.search(r"^```yaml monitors.yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block
    (tmp_path / "monitors.yaml").write_text(block[1], encoding="utf-8")
    assert {monitor.kind for monitor in load_monitors(tmp_path / "monitors.yaml")} == {*KINDS}


def test_it_names_each_option() -> None:
    for field in msgspec.structs.fields(MonitorConfig):
        assert f"`{field.encode_name}`" in PAGE, field.name
        kind = next((one for one in getattr(field.type, "__args__", ()) if hasattr(one, "__struct_fields__")), None)
        for option in msgspec.structs.fields(kind) if kind else ():
            assert re.search(rf"[`{{ ]{option.encode_name}[`:]", PAGE), f"{field.name}.{option.encode_name}"
