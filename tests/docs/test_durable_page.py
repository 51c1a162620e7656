"""What the pages on the durable path say is so."""

import re
import socket
from pathlib import Path

from tests.documentation import blocks, docs_page, matches, paste


def test_an_outage_is_what_the_how_to_shows(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = f":{free.getsockname()[1]}"
    page = blocks(docs_page("durable.md").read_text(encoding="utf-8").replace(":8081", port))
    printed = paste(page, tmp_path)
    shown = [block.text for block in page if block.language == "text"]
    for text, (block, output) in zip(shown, printed.items(), strict=True):
        assert matches(text, re.sub(r"^ +", "", output, flags=re.MULTILINE)), f"{block}:\n{output}"
