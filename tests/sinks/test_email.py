"""The e-mail sink with a real SMTP server."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError, SinkError
from balog.common.secrets import Secret
from balog.sinks.email import EmailSinkConfig
from tests.stand_ins.alerts import alert_delivery, alert_event, alert_life
from tests.stand_ins.batches import refused
from tests.stand_ins.smtp_server import SmtpServer

PASSWORD = "pass-of-the-mail"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    server = SmtpServer(tmp_path_factory.mktemp("mail"), password=PASSWORD)
    yield server
    server.stop()


@pytest.fixture
def server(shared, monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    shared.messages.clear()
    shared.recipients.clear()
    shared.replies.clear()
    return shared


def config(server, **changes):
    options = {
        "host": "localhost",
        "port": server.port,
        "user": "balog",
        "password": Secret(env="SMTP_PASSWORD"),
        "sender": "Balog <balog@example.com>",
        "to": ["ops@example.com"],
        "ca_file": server.ca_file,
    }
    return EmailSinkConfig(**{**options, **changes})


def test_a_message_says_what_happened(server):
    config(server).build().write([alert_delivery()])
    (message,) = server.messages
    assert (message["From"], message["To"]) == ("Balog <balog@example.com>", "ops@example.com")
    assert message["Subject"] == "firing: m1 tap-shop / orders"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content().splitlines() == [
        "No success for 1 h.",
        "",
        "Severity: error",
        "Value: 4500",
        "Expected: at most 3600",
        "Started: 2026-11-24T06:00:00Z",
        "Runs: r1",
        "",
        "https://runs.example.com/r1",
    ]


def test_all_messages_of_an_alert_are_one_conversation(server):
    sink = config(server).build()
    sink.write(
        [
            *alert_life(1),
            *alert_life(2),
            alert_delivery(1, sequence=3, started="2026-11-25T06:00:00Z", since="2026-11-25T06:00:00Z"),
        ]
    )
    first, end, other, _, later = server.messages
    assert end["In-Reply-To"] == end["References"] == first["Message-ID"]
    assert first["References"] is None
    assert len({message["Message-ID"] for message in server.messages}) == 5
    assert other["Message-ID"] != first["Message-ID"] != later["Message-ID"]


def test_an_alert_that_fires_after_a_silence_belongs_to_its_conversation(server):
    sink = config(server).build()
    sink.write([alert_delivery(), alert_delivery(previous="silenced", sequence=3, since="2026-11-24T07:00:00Z")])
    first, again = server.messages
    assert again["References"] == first["Message-ID"] != again["Message-ID"]


def test_a_repeat_of_another_process_has_the_same_message_id(server):
    alert = alert_delivery()
    for _ in range(2):
        config(server).build().write([alert])
    assert len({message["Message-ID"] for message in server.messages}) == 1
    assert len(server.messages) == 2


def test_a_batch_is_one_connection(server):
    before = server.sessions
    config(server).build().write([alert_delivery(number) for number in range(5)])
    assert server.sessions - before == 2  # EHLO before and after STARTTLS


def test_templates_and_names_that_are_not_ascii(server):
    sink = config(server, title="{monitor}\n{reason}", text="Größe: {reason}").build()
    sink.write([alert_delivery(monitor="größe", reason="ü\r\nBcc: x@example.com")])
    (message,) = server.messages
    assert message["Subject"] == "größe ü Bcc: x@example.com"
    assert message["Bcc"] is None
    assert message.get_content().splitlines()[0] == "Größe: ü Bcc: x@example.com"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
def test_any_alert_makes_a_message_that_is_taken(server, text):
    config(server).build().write([alert_delivery(monitor=text, reason=text, key=text, labels={"pipeline": text})])
    message = server.messages[-1]
    assert message["To"] == "ops@example.com"
    assert not message.defects


def test_tls_from_the_first_byte_and_no_encryption(tmp_path, monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    for security, changes in (("tls", {}), ("none", {"user": None, "password": None})):
        server = SmtpServer(tmp_path, security, None if security == "none" else PASSWORD)
        try:
            config(server, security=security, **changes).build().write([alert_delivery()])
            assert len(server.messages) == 1
        finally:
            server.stop()


def test_a_server_without_starttls_gets_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    server = SmtpServer(tmp_path, "none")
    try:
        assert refused(config(server).build(), [alert_delivery()], "STARTTLS").retryable
        assert server.messages == []
    finally:
        server.stop()


def test_a_certificate_of_another_authority_is_refused(server):
    assert refused(config(server, ca_file=None).build(), [alert_delivery()], "certificate").retryable
    assert server.messages == []


def test_a_wrong_password_is_retried_and_not_shown(server, monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", "wrong-pass")
    sink = config(server).build()
    error = refused(sink, [alert_delivery()], "535")
    assert error.retryable
    with pytest.raises(SinkError, match="535") as caught:
        sink.probe()
    assert "wrong-pass" not in str(error) + str(caught.value)


def test_a_probe_sends_nothing(server):
    config(server).build().probe()
    assert server.messages == []


def test_a_recipient_that_is_refused_for_good_is_reported_and_the_others_get_it(server):
    server.replies["gone@example.com"] = "550 no such user"
    sink = config(server, to=["gone@example.com", "ops@example.com"]).build()
    error = refused(sink, [alert_delivery(1), alert_delivery(2)], "gone@example.com: 550 no such user")
    assert (error.retryable, sorted(error.rejected)) == (False, [0, 1])
    assert server.recipients == [["ops@example.com"]] * 2


def test_a_recipient_that_is_busy_gets_it_later_and_the_others_once(server):
    server.replies["busy@example.com"] = "451 greylisted"
    server.once.add("busy@example.com")
    sink = config(server, to=["busy@example.com", "ops@example.com"]).build()
    alert = alert_delivery()
    error = refused(sink, [alert], "451 greylisted")
    assert (error.retryable, list(error.remaining or ())) == (True, [0])
    sink.write([alert])
    assert server.recipients == [["ops@example.com"], ["busy@example.com"]]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"sender": "nobody"}, "from"),
        ({"to": ["a@b", "x y@z"]}, "to[1]"),
        ({"to": ["a@b\nBcc: c@d"]}, "to[0]"),
        ({"user": None}, "password"),
        ({"security": "none"}, "security"),
        ({"title": "{nothing}"}, "title"),
        ({"ca_file": "/no/such/file"}, "ca_file"),
    ],
)
def test_a_wrong_config(server, changes, path):
    with pytest.raises(ConfigError) as caught:
        config(server, **changes).build()
    assert caught.value.path == path


def test_the_preview_is_the_message(server):
    text = config(server, password=Secret(env="NOT_SET")).preview(alert_event(reason="größer")) or ""
    assert text.splitlines()[2].startswith("Subject: firing: m1")
    assert "größer" in text
