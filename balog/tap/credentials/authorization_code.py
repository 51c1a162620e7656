"""OAuth authorization code: a person signs in with a browser, once; then refresh tokens are used."""

from __future__ import annotations

import os
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, HTTPServer
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from balog.common.http.urls import check_url
from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import GrantError, TokenAnswer
from balog.tap.credentials.refresh_token import RefreshToken
from balog.tap.errors import SourceError
from balog.tap.patterns.concurrency import pause


class AuthorizationCode(RefreshToken):
    """Fetches access tokens after a person has signed in with a browser (RFC 6749, 4.1; PKCE, RFC 7636).

    The first run on a terminal prints an address, and waits until the browser returns to ``http://127.0.0.1:PORT/``
    (RFC 8252). The refresh token is stored, so later runs need nobody, until the server rejects it.

    Args:
        url: the token endpoint.
        authorize_url: the authorization endpoint, which the browser opens.
        port: the port to which the browser returns; 0 for a free one, if the server accepts any.
        timeout: seconds to wait for the browser.
        token_file: the JSON file for refresh tokens; None asks in each run.
        show: receives the text for the person, also without a terminal; None prints it to stderr.
        options: ``config_path`` and ``key`` of ``RefreshToken``, and those of ``TokenGrant``.

    Raises:
        ConfigError: an invalid URL.

    A call raises ``SourceError`` if nobody has signed in in time, or there is no terminal to ask on.
    """

    name = "authorization_code"
    advice = "it rejected the sign-in; run the tap again on a terminal"

    def __init__(
        self,
        url: str,
        authorize_url: str,
        client_id: str,
        client_secret: str = "",
        *,
        port: int = 0,
        timeout: float = 300.0,
        token_file: str | os.PathLike[str] | None = None,
        show: Callable[[str], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(url, client_id, client_secret, "", token_file=token_file, **options)
        check_url(authorize_url, "authorize_url")
        self._authorize_url = authorize_url
        self._port, self._timeout, self._show = port, timeout, show
        self._identity = f"{url}\n{client_id}\n{authorize_url}"

    def _use(self, token: str) -> tuple[Granted | str, str]:
        if token:
            try:
                return super()._use(token)
            except GrantError as error:
                if error.code != "invalid_grant":
                    raise
        answer = self._sign_in()
        return answer.access, answer.refresh_token

    def _sign_in(self) -> TokenAnswer:
        if self._show is None and not (sys.stderr and sys.stderr.isatty()):
            raise SourceError("nobody is signed in, and there is no terminal to ask on; run the tap once on a terminal")
        state, verifier = token_urlsafe(24), token_urlsafe(48)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        try:
            server = _Callback(self._port, state)
        except OSError as error:
            raise SourceError(f"port {self._port} cannot be opened for the browser: {error.strerror}") from None
        with server:
            own_url = f"http://127.0.0.1:{server.server_port}/"
            query = {
                **self._more,
                "response_type": "code",
                "client_id": self._id,
                "redirect_uri": own_url,
                "state": state,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
            separator = "&" if urlsplit(self._authorize_url).query else "?"
            text = f"To sign in, open {self._authorize_url}{separator}{urlencode(query)}"
            if self._show is not None:
                self._show(text)
            else:  # stderr gets a line that is not an event
                print(text, file=sys.stderr, flush=True)
            code = server.wait(self._timeout)
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": own_url, "code_verifier": verifier}
        return self._token(fields)


class _Callback(HTTPServer):
    """A server on 127.0.0.1 that waits for the browser's return with a code."""

    timeout = 0.1

    def __init__(self, port: int, state: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.state = state
        self.answer: dict[str, str] = {}

    def wait(self, seconds: float) -> str:
        """Return the code.

        Raises:
            SourceError: none came in time, or the person or the server refused.
        """
        until = time.monotonic() + seconds
        while not self.answer and time.monotonic() < until:
            pause(0)  # ends when the run does
            self.handle_request()
        if not self.answer:
            raise SourceError("nobody has signed in in time; run the tap again")
        if "code" not in self.answer:
            error = self.answer.get("error", "")
            reason = error if error.replace("_", "").isalnum() and len(error) < 60 else "no reason"
            raise SourceError(f"the sign-in was refused: {reason}")
        return self.answer["code"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a browser that closes its connection is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Callback
    timeout = 5  # for each read, so that a silent connection does not keep others waiting

    def do_GET(self) -> None:
        """Accept the answer that has the state of this sign-in; any other page could send one, too."""
        given = dict(parse_qsl(urlsplit(self.path).query))
        is_ours = compare_digest(given.get("state", "").encode(), self.server.state.encode())
        if is_ours:
            self.server.answer = given
        text = b"Signed in. You can close this page." if "code" in given and is_ours else b"Not signed in."
        self.send_response(200 if is_ours else 400)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the path contains the code."""
