"""The page ``/`` of a service: what it does now, with live numbers of ``/v1/status``.

It is one file that asks nobody else for anything. It holds no numbers itself, so everybody may have it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources

__all__ = ["page"]


@lru_cache(maxsize=1)
def page() -> tuple[bytes, dict[str, str]]:
    """Return the page, and the headers of its answer: a policy under which only its own script runs."""
    parts = {name: _text(name) for name in ("index.html", "style.css", "script.js")}
    text = parts["index.html"].replace("/*style*/", parts["style.css"]).replace("/*script*/", parts["script.js"])
    policy = (
        f"default-src 'none'; style-src {_hash(parts['style.css'])}; script-src {_hash(parts['script.js'])}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode(), {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
