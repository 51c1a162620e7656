"""The page on sign-ins: its blocks run against the example's shop, and each declaration of its table can be made."""

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme

from balog.tap import credentials
from balog.tap.http import Client
from examples.shop_server import Shop
from tests.documentation import docs_page
from tests.programs import run_program

ROOT = Path(__file__).parents[2]
PAGE = docs_page("tap-signing-in.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with Shop(5) as shop:
        (tmp_path / "page.py").write_text("\n".join(blocks).replace("https://api.example.com", shop.url))
        command = [sys.executable, "-W", "error::ResourceWarning", "page.py"]
        done = run_program(*command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        assert done.stdout.splitlines() == ["200"]


DECLARATIONS = re.findall(r"^\|[^|]*\| `((?:auth|certificate)=[^`]*)`", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", DECLARATIONS)
def test_the_declarations_of_the_table_can_be_made(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = trustme.CA().issue_cert("tap@example.com")
    own.cert_chain_pems[0].write_to_path("client.pem")
    own.private_key_pem.write_to_path("client.key")
    names: dict[str, Any] = {name: getattr(credentials, name) for name in credentials.__all__}
    names |= dict.fromkeys(["token_url", "authorize_url"], "https://api.example.com/oauth")
    names |= dict.fromkeys(["id", "secret", "user", "password"], "text")
    names["config"] = dict.fromkeys(["token", "user", "password", "key", "refresh_token"], "text")
    names["function"] = lambda: "text"
    ast.parse(f"f({text})")
    with eval(f"Client('https://api.example.com', {text})", {"Client": Client, **names}) as client:
        assert repr(client) == "<Client of https://api.example.com>"


def test_the_table_has_all_sign_ins() -> None:
    assert len(DECLARATIONS) == 11
    made = {"Credential", "Granted", "GrantError", "TokenGrant", "Bearer", "QueryKey"}
    for name in set(credentials.__all__) - made - {"once"}:
        assert f"{name}(" in " ".join(DECLARATIONS) or f"{name}." in " ".join(DECLARATIONS), name
