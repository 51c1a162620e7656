"""A real SMTP server (aiosmtpd) at a loopback address, with a certificate of its own authority."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import trustme

__all__ = ["SmtpServer"]


class SmtpServer:
    """A mail server that keeps its messages.

    Args:
        folder: for the authority's certificate.
        security: as of the sink.
        password: of the user ``balog``; None for no login.

    Attributes:
        messages: those that were taken, parsed.
        refused: a subject that contains one of these texts is refused for good.
        replies: replies to recipients by address, instead of 250; once each if in ``once``.
    """

    def __init__(self, folder: Path, security: str = "starttls", password: str | None = None) -> None:
        pytest.importorskip("aiosmtpd", reason="aiosmtpd is not installed")
        import ssl

        authority = trustme.CA()
        self.ca_file = str(folder / "mail-authority.pem")
        authority.cert_pem.write_to_path(self.ca_file)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(self._context)
        self.security, self._password = security, password
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.sessions = 0
        self.refused: list[str] = []
        self.replies: dict[str, str] = {}
        self.once: set[str] = set()
        self.port = 0
        self.start()

    def start(self) -> None:
        """Listen, at the same port as before."""
        from aiosmtpd.controller import Controller
        from aiosmtpd.smtp import AuthResult

        def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
            is_right = (data.login, data.password) == (b"balog", (self._password or "").encode())
            return AuthResult(success=is_right, handled=False)

        options: dict[str, Any] = {}
        if self._password is not None:
            options |= {
                "authenticator": authenticate,
                "auth_required": True,
                "auth_require_tls": self.security != "tls",
            }
        if self.security == "tls":
            options |= {"ssl_context": self._context, "auth_require_tls": False}
        elif self.security == "starttls":
            options |= {"tls_context": self._context, "require_starttls": True}
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port or _free_port(), **options)
        self._controller.start()
        self.port = self._controller.port

    def stop(self) -> None:
        """Stop listening; again does nothing."""
        if self._controller is not None:
            self._controller.stop(no_assert=True)
        self._controller = None

    async def handle_EHLO(self, server: Any, session: Any, envelope: Any, hostname: str, responses: Any) -> Any:
        self.sessions += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.replies:
            return self.replies.pop(address) if address in self.once else self.replies[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        if any(text in str(message["Subject"]).split() for text in self.refused):
            return "554 refused"
        self.messages.append(message)
        self.recipients.append(envelope.rcpt_tos)
        return "250 OK"


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
