"""The page ``/`` of a service, with live numbers from ``/v1/status``.

The page is one file without external resources. It contains no data itself, so it needs no token.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=1)
def page() -> tuple[bytes, dict[str, str]]:
    """Return the page and its headers, with a content security policy that allows only the page's own script."""
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
