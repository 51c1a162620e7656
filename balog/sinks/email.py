"""Alerts by e-mail, over SMTP: a message per alert, and all messages about an alert are one conversation."""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime, parseaddr
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from balog.common.errors import ConfigError
from balog.common.http import CaFile, Timeout
from balog.common.http.pool import tls_context
from balog.common.secrets import Secret
from balog.event import Event
from balog.event.payload import AlertPayload
from balog.sinks.alerts.alert_sink import AlertSink, AlertSinkOptions
from balog.sinks.alerts.alert_text import MAX_TEXT, MAX_TITLE, AlertTemplate, facts, read_alert, short_line
from balog.sinks.base import Batching, Delivery, SinkError, SinkGuarantee

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_TOO_LARGE = 552
_MAX_PARTIAL = 1000
_MAX_REPLY = 200

_Port = Annotated[int, Meta(ge=1, le=65535)]
_Address = Annotated[str, Meta(min_length=3, max_length=320)]


class EmailSinkConfig(AlertSinkOptions, tag_field="type", tag="email", forbid_unknown_fields=True, kw_only=True):
    """Send an e-mail for each alert."""

    examples: ClassVar = (
        {
            "type": "email",
            "host": "smtp.example.com",
            "user": "balog",
            "password": {"env": "SMTP_PASSWORD"},
            "from": "alerts@example.com",
            "to": ["ops@example.com"],
        },
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "the mail server has accepted the message",
            "an alert",
            repeats="has the same `Message-ID`",
            not_retried="a message or recipient that the server refuses permanently",
        ),
    )

    host: Annotated[str, Meta(min_length=1, max_length=253, description="The SMTP server.")]
    port: Annotated[
        _Port | None, Meta(description="587, 465 or 25 by default, according to security.", examples=[2525])
    ] = None
    security: Annotated[
        Literal["starttls", "tls", "none"], Meta(description="How the connection is encrypted. It is always verified.")
    ] = "starttls"
    user: Annotated[str, Meta(min_length=1, max_length=320, description="The name for the login.")] | None = None
    password: Secret | None = None
    sender: Annotated[_Address, Meta(description="Balog <alerts@example.com>, or the address alone.")] = msgspec.field(
        name="from"
    )
    to: Annotated[list[_Address], Meta(min_length=1, max_length=50, description="The recipients.")]
    timeout: Timeout = 10.0
    ca_file: CaFile | None = None
    batch: Batching = Batching(age=1.0)

    @property
    def name(self) -> str:
        """``email HOST:PORT``."""
        return f"email {self.host}:{self.port or _PORTS[self.security]}"

    def build(self) -> EmailSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: an address, a template or the login is invalid, or a secret is missing.
        """
        templates = self._checked_templates()
        if (self.user is None) != (self.password is None):
            raise ConfigError("belongs to user; give both or none", path="password")
        if self.password is not None and self.security == "none":
            raise ConfigError("would send the password unencrypted; expected starttls or tls", path="security")
        password = self.password.reveal("password") if self.password is not None else ""
        context = tls_context(self.ca_file) if self.security != "none" else None
        return EmailSink(self, templates, password, context)

    def preview(self, event: Event) -> str | None:
        """Return the message; see ``SinkOptions``."""
        alert = read_alert(event)
        if alert is None:
            return None
        message = build_message(self, alert, event, self._checked_templates())
        headers = [f"{name}: {value}" for name, value in message.items() if not name.startswith(("Content-", "MIME-"))]
        return "\n".join([*headers, "", str(message.get_content())])

    def _checked_templates(self) -> tuple[AlertTemplate, AlertTemplate]:
        _check_address(self.sender, "from")
        for number, address in enumerate(self.to):
            _check_address(address, f"to[{number}]")
        return self.templates()


class EmailSink(AlertSink):
    """See ``EmailSinkConfig``. At least once; a repeated message has the same Message-ID."""

    def __init__(
        self,
        config: EmailSinkConfig,
        templates: tuple[AlertTemplate, AlertTemplate],
        password: str,
        context: ssl.SSLContext | None,
    ) -> None:
        super().__init__(config)
        self._config = config
        self._templates = templates
        self._password = password
        self._context = context
        self._server: smtplib.SMTP | None = None
        self._left: dict[str, list[str]] = {}  # event id -> recipients that did not get it yet

    def write(self, batch: Sequence[Delivery]) -> None:
        """Send the alerts of a batch over one connection."""
        try:
            super().write(batch)
        finally:
            self._disconnect()

    def probe(self) -> None:
        """Connect and log in, without a message; see ``Sink``."""
        try:
            self._call(lambda server: server.noop())
        finally:
            self._disconnect()

    def close(self) -> None:
        """Do nothing: no connection outlives a batch."""

    def send(self, alert: AlertPayload, event: Event) -> None:
        """Send the message of an alert to all recipients that did not get it yet; see ``AlertSink``."""
        recipients = self._left.pop(event.header.id, None) or [parseaddr(address)[1] for address in self._config.to]
        message = build_message(self._config, alert, event, self._templates)
        sender = parseaddr(self._config.sender)[1]
        refused: Mapping[str, tuple[int, bytes]] = self._call(
            lambda server: server.send_message(message, sender, recipients)
        )
        if not refused:
            return
        later = [address for address, (code, _) in refused.items() if code < 500]
        if later:
            if len(self._left) < _MAX_PARTIAL:
                self._left[event.header.id] = later
            raise SinkError(f"{self._place}: {self._refusal(refused, later[0])}")
        reason = self._refusal(refused, next(iter(refused)))
        self._latest.record(alert)  # the others have it
        raise SinkError(f"{self._place}: {reason}; the other recipients have the message", retryable=False)

    def _call(self, call: Any) -> Any:
        """Connect unless there is a connection, and call a function with it.

        Raises:
            SinkError: any error of the server or the network.
        """
        try:
            if self._server is None:
                self._server = self._connect()
            return call(self._server)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            reason = self._refusal(error.recipients, next(iter(error.recipients), ""))
            raise SinkError(f"{self._place}: {reason}", retryable=any(code < 500 for code in codes)) from None
        except smtplib.SMTPResponseException as error:
            is_of_event = isinstance(error, smtplib.SMTPDataError) or error.smtp_code == _TOO_LARGE
            reason = f"answered {error.smtp_code} {self._reply(error.smtp_error)}"
            self._disconnect()
            raise SinkError(f"{self._place} {reason}", retryable=not is_of_event or error.smtp_code < 500) from None
        except (smtplib.SMTPException, OSError) as error:
            self._disconnect()
            detail = (
                getattr(error, "verify_message", None) or getattr(error, "strerror", None) or self._reply(str(error))
            )
            raise SinkError(f"{self._place}: {detail or type(error).__name__}") from None

    def _connect(self) -> smtplib.SMTP:
        config = self._config
        port = config.port or _PORTS[config.security]
        if config.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(config.host, port, timeout=config.timeout, context=self._context)
        else:
            server = smtplib.SMTP(config.host, port, timeout=config.timeout)
        try:
            if config.security == "starttls":
                server.starttls(context=self._context)
            if config.user is not None:
                server.login(config.user, self._password)
        except BaseException:
            server.close()
            raise
        return server

    def _disconnect(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        try:
            server.quit()
        except (smtplib.SMTPException, OSError):
            server.close()

    @property
    def _place(self) -> str:
        return self._config.name.partition(" ")[2]

    def _refusal(self, refused: Mapping[str, tuple[int, bytes]], address: str) -> str:
        code, reply = refused.get(address, (0, b""))
        return f"refused {address}: {code} {self._reply(reply)}"

    def _reply(self, reply: bytes | str) -> str:
        text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
        if self._password:
            text = text.replace(self._password, "…")
        return short_line(text)[:_MAX_REPLY]


def build_message(
    config: EmailSinkConfig, alert: AlertPayload, event: Event, templates: tuple[AlertTemplate, AlertTemplate]
) -> EmailMessage:
    """Return the message of an alert.

    A repeat has the same Message-ID. All messages of an alert refer to the one about its begin.
    """
    title, text = templates
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"] = config.sender
    message["To"] = ", ".join(config.to)
    message["Subject"] = short_line(title.render(alert, MAX_TITLE))
    message["Date"] = format_datetime(event.header.timestamp)
    domain = parseaddr(config.sender)[1].rpartition("@")[2]
    conversation = _message_id(domain, alert.key, alert.started or alert.since)
    if alert.state == "firing" and alert.previous not in ("silenced", "acknowledged"):
        message["Message-ID"] = conversation
    else:
        message["Message-ID"] = _message_id(domain, alert.key, alert.started or "", str(alert.sequence), alert.since)
        message["In-Reply-To"] = message["References"] = conversation
    message["Auto-Submitted"] = "auto-generated"
    lines = [text.render(alert, MAX_TEXT), "", *(f"{name}: {value}" for name, value in facts(alert).items())]
    if alert.evidence.link:
        lines += ["", short_line(alert.evidence.link)]
    message.set_content("\n".join(lines) + "\n")
    return message


def _message_id(domain: str, *parts: str) -> str:
    return f"<balog.{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:40]}@{domain}>"


def _check_address(text: str, path: str) -> None:
    address = parseaddr(text)[1]
    name, at, domain = address.rpartition("@")
    if not (name and at and domain) or not text.isprintable() or not address.isascii() or " " in address:
        raise ConfigError(f"{text!r:.80} is not an address; expected alerts@example.com", path=path)
