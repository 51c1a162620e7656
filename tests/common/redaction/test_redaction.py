import base64
import gc
import itertools
import json
import random
import re
import string
import time
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import balog
from balog.common.errors import ConfigError, EventError
from balog.common.redaction import Redactor, from_config
from balog.common.redaction.redactor import DEFAULT_KEYS, DEFAULT_PATTERNS
from balog.event import encode
from balog.testing import capture_events
from tests.waiting import run_threads

GONE = "[redacted]"
redactor = Redactor()
careful = Redactor(emails=True, cards=True)

# Put together here, so that nobody's search for secrets in source code finds any.
LETTERS = string.ascii_letters + string.digits
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0In0" + ".SflKxwRJSMeKKF2QT4"
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
PRIVATE_KEY = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----"
PREFIXED = [
    *("gh" + kind + "_" + LETTERS[:36] for kind in "pousr"),
    "github_" + "pat_" + LETTERS[:22] + "_" + LETTERS,
    *("xox" + kind + "-1234567890-" + LETTERS[:24] for kind in "bap"),
    "sk_" + "live_" + LETTERS[:24],
    "sk" + "-proj-" + LETTERS[:40],
    "gl" + "pat-" + LETTERS[:20],
    "AI" + "za" + LETTERS[:35],
    "npm" + "_" + LETTERS[:36],
    "pypi" + "-" + LETTERS,
    "SG" + "." + LETTERS[:22] + "." + LETTERS[:43],
    "ya" + "29." + LETTERS[:30],
    *("gl" + kind + "-" + LETTERS[:20] for kind in ("ptt", "dt", "rt", "cbt", "soat")),
    "hv" + "s." + LETTERS[:40],
    "s" + "." + LETTERS[:24],
    "da" + "pi" + "0123456789abcdef" * 2,
    "12345678" + ":AA" + LETTERS[:33],
    "M" + LETTERS[:23] + ".abcdef." + LETTERS[:30],
    "NR" + "AK-" + LETTERS[26:].upper()[:27],
    "key" + "-" + "0123456789abcdef" * 2,
    "0123456789abcdef" * 2 + "-us" + "12",
    "pat" + "-na1-" + "01234567-89ab-cdef-0123-456789abcdef",
    LETTERS[:14] + ".atlas" + "v1." + LETTERS,
    "dp" + ".pt." + LETTERS[:43],
    "dt" + "0c01." + LETTERS[:24] + "." + LETTERS + "ab",
    "sk" + "-ant-api03-" + LETTERS,
    "xkey" + "sib-" + "0123456789abcdef" * 4 + "-" + LETTERS[:16],
    "GOC" + "SPX-" + LETTERS[:28],
    "lin" + "_api_" + LETTERS[:40],
    "0123456789abcdef" * 2 + "0123" + "NR" + "AL",
]


def is_clean(one: Redactor, encoded: bytes) -> bool:
    try:
        return one.redact_encoded(encoded) is encoded
    except EventError:
        return False


@pytest.mark.parametrize("name", DEFAULT_KEYS)
def test_the_value_of_a_secret_s_key_is_replaced_whole_in_every_spelling(name: str) -> None:
    words = name.split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    for spelling in [name, name.upper(), "-".join(words), camel, "".join(words), f"db_{name}", f"X-{name}", f"{name}2"]:
        assert redactor.redact({spelling: "x"}) == {spelling: GONE}, spelling


@pytest.mark.parametrize(
    "name",
    [
        *("tokens", "token_count", "max_tokens", "token_type", "tokenizer", "primary_key", "key_properties", "keys"),
        *("next_page_token", "nextPageToken", "NextToken", "continuation-token", "page_token2", "author", "secretary"),
        *("password_policy", "cookie_count", "message", "stream", "url", "passed", "sessions", "", "_", "1"),
    ],
)
def test_what_only_looks_like_a_secret_s_name_is_kept(name: str) -> None:
    data = {name: "x"}

    assert redactor.redact(data) is data


@pytest.mark.parametrize("value", ["x", 5, 1.5, ["a"], {"a": {"b": 1}}, b"x", ("x",)])
def test_whatever_the_value_is_it_goes(value: Any) -> None:
    assert redactor.redact({"a": [{"password": value}]}) == {"a": [{"password": GONE}]}


@pytest.mark.parametrize("value", [None, True, False, "", [], {}, "None", "false", "null"])
def test_a_value_that_can_be_no_secret_stays(value: Any) -> None:
    for data in ({"token": value, "has_token": value}, [("password", value)], {"name": "token", "value": value}):
        assert redactor.redact(data) is data


@pytest.mark.parametrize(
    "text",
    [
        *("token=None, a=1", "Config(token=None)", '{"token": null, "has_token": false}', "has_token: False."),
        *("pass: 5, fail: 3", "session: closed", "auth: ok", "compass=north", "oauth=on", "sessions=5", "bypass=3"),
    ],
)
def test_text_that_names_no_secret_s_value_stays(text: str) -> None:
    assert redactor.redact_text(text) is text


@pytest.mark.parametrize(
    "secret",
    [JWT, AWS_ID, *PREFIXED],
    ids=lambda secret: secret[:6],
)
@pytest.mark.parametrize("around", ["{}", "see {}.", "<{}>", "a={},b=2", "'{}'", "\\n{}\\n", '{{"k": "{}"}}'])
def test_a_token_of_a_known_form_is_replaced_wherever_it_stands(secret: str, around: str) -> None:
    redacted = redactor.redact_text(around.format(secret))

    assert GONE in redacted
    assert secret[-12:] not in redacted


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abc123def", f"Authorization: {GONE}"),
        ("sent Bearer abc123def to it", f"sent Bearer {GONE} to it"),
        ("sent Basic dXNlcjpwYXNz to it", f"sent Basic {GONE} to it"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: {GONE}"),
        ('Authorization: Digest username="bob", response="beef"\nnext', f"Authorization: {GONE}\nnext"),
        ("Cookie: a=1; sid=beef; c=3\nHost: x", f"Cookie: {GONE}\nHost: x"),
        ("{'Authorization': 'Bearer abc def', 'Accept': 'x'}", f"{{'Authorization': '{GONE}', 'Accept': 'x'}}"),
        ("postgres://bob:hunter2@db.example.com:5432/x", f"postgres://{GONE}@db.example.com:5432/x"),
        ("https://bob:hun@ter2@example.com/?a=1", f"https://{GONE}@example.com/?a=1"),
        ("mysql://bob:hun/ter2@example.com/db", f"mysql://{GONE}@example.com/db"),
        (r"https:\/\/bob:hunter2@example.com", rf"https:\/\/{GONE}@example.com"),
        ("https://0123456789abcdef0123@o0.example.com/1", f"https://{GONE}@o0.example.com/1"),
        ("GET /x?page=2&api_key=beef&sort=a", f"GET /x?page=2&api_key={GONE}&sort=a"),
        ("GET /x?X-Amz-Signature=beef&b=1", f"GET /x?X-Amz-Signature={GONE}&b=1"),
        ("user=bob password=hunter2 host=x", f"user=bob password={GONE} host=x"),
        ("Server=x;Uid=bob;Pwd=hunter;2;Database=y", f"Server=x;Uid=bob;Pwd={GONE};Database=y"),
        ("password = 'two words' rest", f"password = '{GONE}' rest"),
        ('{"password": "hun\\"ter2", "a": 1}', f'{{"password": "{GONE}", "a": 1}}'),
        (r'"{\"password\": \"hun\\\"ter2\", \"a\": 1}"', rf'"{{\"password\": \"{GONE}\", \"a\": 1}}"'),
        ('{"token": 12, "a": 1}', f'{{"token": "{GONE}", "a": 1}}'),
        ("GET /x?page=2&key=beef&sort=a", f"GET /x?page=2&key={GONE}&sort=a"),
        ("curl -s -u bob:hunter2 https://x", f"curl -s -u {GONE} https://x"),
        ("curl --user 'bob:hunter 2' https://x", f"curl --user {GONE} https://x"),
        ("next=%2Fx%3Fpassword%3Dhunter2%26a%3D1", f"next=%2Fx%3Fpassword%3D{GONE}%26a%3D1"),
        ("%7B%22token%22%3A%22hunter2%22%7D", f"%7B%22token%22%3A%22{GONE}%22%7D"),
        ("db_pass=hunter2 session=beef1", f"db_pass={GONE} session={GONE}"),
        ("{'auth': 'hunter2', 'otp': '123456'}", f"{{'auth': '{GONE}', 'otp': '{GONE}'}}"),
        ('{"secrets": ["a", ["b"]], "c": 1}', f'{{"secrets": "{GONE}", "c": 1}}'),
        ("Config(password=b'hunter2', a=1)", f"Config(password=b'{GONE}', a=1)"),
        ("password=SecretStr('hunter2'), a=1", f"password={GONE}'), a=1"),
        ("os.environ['API_TOKEN'] = 'beef'", f"os.environ['API_TOKEN'] = '{GONE}'"),
        ('{:password=>"beef"}', f'{{:password=>"{GONE}"}}'),
        ("tap --api-key beef --start now", f"tap --api-key {GONE} --start now"),
        ("['tap', '--password', 'hunter2']", f"['tap', '--password', '{GONE}']"),
        ("<login><password>hunter2</password></login>", f"<login><password>{GONE}</password></login>"),
        (f"the AWS secret key is {AWS_SECRET}, use it", f"the AWS secret key is {GONE}, use it"),
        (f"aws_secret_access_key={AWS_SECRET}", f"aws_secret_access_key={GONE}"),
        ("AccountName=x;AccountKey=beef==;Suffix=y", f"AccountName=x;AccountKey={GONE};Suffix=y"),
        ("password: 'never closed", f"password: '{GONE}"),
        ("İ password=hunter2", f"İ password={GONE}"),
        ("PASSWORD=hunter2\nexport PASSWORD=a\\\nhunter2\nb", f"PASSWORD={GONE}\nexport PASSWORD={GONE}\nb"),
        ("host:         db\npassword:     hunter2", f"host:         db\npassword:     {GONE}"),
        ('db_password            :\t\t\t\t\t\t"hunter2"', f'db_password            :\t\t\t\t\t\t"{GONE}"'),
        ("ValueError: password:\n            hunter2", f"ValueError: password:\n            {GONE}"),
        ("--password            hunter2 -v", f"--password            {GONE} -v"),
        ("CREATE USER etl WITH PASSWORD 'hunter2'", "CREATE USER etl WITH PASSWORD '[redacted]'"),
        ("alter user 'a'@'b' identified by 'hunter2';", "alter user 'a'@'b' identified by '[redacted]';"),
        ("CREATE USER a IDENTIFIED WITH sha256 BY 'hun''ter2'", "CREATE USER a IDENTIFIED WITH sha256 BY '[redacted]'"),
        ("SET PASSWORD FOR 'bob' = PASSWORD('hunter2')", "SET PASSWORD FOR 'bob' = PASSWORD('[redacted]')"),
        ("COPY t SECRET_ACCESS_KEY 'hunter2' GZIP", "COPY t SECRET_ACCESS_KEY '[redacted]' GZIP"),
        ("SELECT 'password', 'x' FROM t ORDER BY 'y'", "SELECT 'password', 'x' FROM t ORDER BY 'y'"),
    ],
)
def test_secrets_in_text_go_and_what_is_around_them_stays(text: str, redacted: str) -> None:
    assert redactor.redact_text(text) == redacted
    assert redactor.redact_text(redacted) == redacted


@pytest.mark.parametrize("cut", [len(PRIVATE_KEY), 45])
def test_a_private_key_goes_also_when_the_text_is_cut_off_in_it(cut: int) -> None:
    redacted = redactor.redact_text("key:\n" + PRIVATE_KEY[:cut])

    assert "MII" not in redacted
    assert "PRIVATE KEY" in redacted


@pytest.mark.parametrize(
    "text",
    [
        "Beginning sync of 'airports' in incremental mode",
        "GET https://api.example.com:8080/v1/x?page=3&per_page=100 answered 200 in 5 ms",
        "nextPageToken=CAUQAA, 3 tokens left, token count: 7",
        "basic authentication is used; Basic Authentication; a bearer token is wanted",
        "see https://example.com/@someone and git@example.com and ssh://git@example.com/a",
        "disk-0123456789abcdef0123456789 task-0123456789abcdef01234",
        "Asia/Tokyo AKIA eyJ. gh_ password secret token",
        "0f3a9cbd-1234-5678-9abc-def012345678 4111111111111111 bob@example.com",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redactor.redact_text(text) is text
    assert redactor.redact({"message": text})["message"] is text


def test_mail_addresses_and_card_numbers_go_if_asked() -> None:
    text = "mail bob.o'neil+x@mail.example.com, card 4111-1111 1111 1111, amex 378282246310005."

    assert careful.redact_text(text) == f"mail {GONE}, card {GONE}, amex {GONE}."
    assert redactor.redact_text(text) is text


@pytest.mark.parametrize(
    "number",
    [
        "4111 1111 1111 1112",
        "1795162731062",
        "1795162731062342400",
        "41111111111111111111111",
        "2026-11-20 07-46-12-12",
    ],
)
def test_other_long_numbers_are_no_cards(number: str) -> None:
    assert careful.redact_text(f"n {number} n") == f"n {number} n"


def test_a_card_is_found_beside_other_digits_and_as_a_number() -> None:
    assert careful.redact_text("2026 4111 1111 1111 1111") == f"2026 {GONE}"
    assert careful.redact_text("4111 1111 1111 1111 2026") == f"{GONE} 2026"
    assert careful.redact({"n": [4111111111111111, 4111111111111112, -4111111111111111]}) == {
        "n": [GONE, 4111111111111112, -4111111111111111]
    }
    assert careful.redact({"cvv": 123}) == {"cvv": GONE}


def test_clean_data_is_given_back_itself_and_dirty_data_is_not_changed_in_place() -> None:
    clean = {"a": [1, "x", {"b": (1, 2), "s": {3}}], "o": object(), 5: b"page=x", "value": "x", "name": "y"}
    assert redactor.redact(clean) is clean

    dirty = {"a": [{"token": "x"}], "b": ("password=x",), "kept": clean}
    before = repr(dirty)
    redacted = redactor.redact(dirty)
    assert repr(dirty) == before
    assert redacted["a"] == [{"token": GONE}]
    assert redacted["b"] == [f"password={GONE}"]
    assert redacted["kept"]["o"] is clean["o"]


def test_what_is_redacted_already_is_clean() -> None:
    once = redactor.redact({"password": "x", "url": "https://a:b@c/?token=x", "auth": "Bearer abc123def"})

    assert redactor.redact(once) is once


def test_names_beside_values_and_flags_before_them_tell() -> None:
    assert redactor.redact([{"name": "DB_PASSWORD", "value": "x"}, {"name": "token", "value": 3}]) == [
        {"name": "DB_PASSWORD", "value": GONE},
        {"name": "token", "value": 3},
    ]
    assert redactor.redact({"key": "authorization", "value": "x"}) == {"key": "authorization", "value": GONE}
    assert redactor.redact(["tap", "--pass-word", "x", "--page", "y"]) == ["tap", "--pass-word", GONE, "--page", "y"]


@pytest.mark.parametrize(
    "name", ["user[password]", "b'password'", "('a', 'password')", "<Key.P: 'password'>", '"token"']
)
def test_quotes_and_brackets_around_a_name_hide_nothing(name: str) -> None:
    assert redactor.redact({name: "x"}) == {name: GONE}


def test_lists_of_pairs_are_read_as_names_and_values() -> None:
    pairs = [("page", "1"), ("password", "x"), ["token", {"a": 1}]]

    assert redactor.redact(pairs) == [["page", "1"], ["password", GONE], ["token", GONE]]
    assert redactor.redact([["id", "name"], ["password", 1, 2]]) == [["id", "name"], ["password", 1, 2]]
    assert redactor.redact(["password", "email"]) == ["password", "email"]


def test_secrets_as_keys_go_and_stay_apart() -> None:
    redacted = redactor.redact({PREFIXED[0]: 1, PREFIXED[1]: 2, GONE: 3})

    assert sorted(redacted.values()) == [1, 2, 3]
    assert PREFIXED[0] not in redacted
    assert redacted[GONE] == 3


def test_cycles_and_any_depth_are_fine() -> None:
    loop: dict[str, Any] = {"password": "x"}
    loop["again"] = [loop]
    redacted = redactor.redact(loop)
    assert redacted["password"] == GONE
    assert redacted["again"][0] is redacted

    harmless: list[Any] = []
    harmless.append(harmless)
    assert redactor.redact(harmless) is harmless

    deep: Any = {"token": "x"}
    for _ in range(100_000):
        deep = [deep]
    redacted = redactor.redact(deep)
    for _ in range(100_000):
        redacted = redacted[0]
    assert redacted == {"token": GONE}


def test_own_names_patterns_and_replacement() -> None:
    own = Redactor(
        extra_keys=["ssn", "s3 key"],
        extra_patterns=[r"cust-\d+", r"order (?P<secret>\w+)!"],
        keep_keys=["device_token"],
        replacement="***",
    )

    assert own.redact({"ssn": 1, "S3Key": 2, "s4_key": 3, "device_token": 4, "token": 5}) == {
        "ssn": "***",
        "S3Key": "***",
        "s4_key": 3,
        "device_token": 4,
        "token": "***",
    }
    assert own.redact_text("cust-77 has order abc! ssn=5") == "*** has order ***! ssn=***"
    assert (
        Redactor(keys=[], patterns=[], names=[], expressions=[]).redact_text("password=x " + JWT) == "password=x " + JWT
    )
    assert Redactor(keys=["pin"], patterns=[], names=[], expressions=[]).redact({"pin": 1, "password": 2}) == {
        "pin": GONE,
        "password": 2,
    }


class Login(NamedTuple):
    user: str
    password: str


def test_values_are_looked_at_before_they_are_encoded() -> None:
    log = balog.get_logger("a")
    headers = [(b"host", b"example.com"), (b"authorization", b"Bearer hunter2hunter2")]
    login = Login("bob", "hunter2hunter2")
    payloads: list[dict[Any, Any]] = [
        {b"password": "hunter2hunter2", "n": 1},
        {"headers": headers, "n": 1},
        {"login": login, "n": 1},
        {"login": login, "odd": object(), "n": 1},
        {"body": b"user=bob&password=hunter2hunter2", "n": 1},
        {"pairs": [{"Name": "password", "Value": "hunter2hunter2"}], "n": 1},
    ]
    for payload in payloads:
        with capture_events(strict=False) as found:
            log.info("x", payload=payload)
            log.bind(bound=payload).info("y")
        for event in found:
            line = encode(event)
            assert b"hunter2" not in line
            assert base64.b64encode(b"hunter2hunter2")[:-4] not in line
            assert GONE.encode() in line


def test_a_named_tuple_is_redacted_although_a_list_of_the_same_form_was_clean() -> None:
    one = Redactor()
    for value in ({"a": ["bob", "0000"]}, {"a": Login("bob", "1234")}):
        encoded = one.redact_value(value, msgspec.json.encode(value))
    assert encoded == b'{"a":["bob","[redacted]"]}'


def test_names_suffixes_and_expressions_are_said_apart() -> None:
    own = Redactor(extra_keys=["s3"], extra_suffixes=["_plate"], extra_expressions=[r"^x_.*_id$"], keep_keys=["pat"])

    data = {"fields": 1, "process": 2, "s3": 3, "s": 4, "pat": 5}
    assert own.redact(data) == {**data, "s3": GONE}
    assert own.redact({"plate": 1, "number_plate": 2, "plates": 3}) == {
        "plate": GONE,
        "number_plate": GONE,
        "plates": 3,
    }
    assert own.redact({"x_user_id": 1, "user_id": 2}) == {"x_user_id": GONE, "user_id": 2}


TRACEBACK = """Traceback (most recent call last):
  File "tap.py", line 12, in sync
    secrets = [
  File "tap.py", line 3, in connect
    connect(credentials={
  File "tap.py", line 4, in login
    login(password="hunter2", token=get_token(user))
  File "tap.py", line 5, in raise_it
    raise ValueError("token=hunter2 is old")
  File "tap.py", line 6, in keys
    token: str = os.environ["API_TOKEN"]
ValueError: token=hunter2 is old, column 'password' of 3
"""


def test_source_lines_of_a_traceback_are_code_and_its_reason_stays() -> None:
    redacted = redactor.redact_text(TRACEBACK)

    assert redacted == TRACEBACK.replace("hunter2", GONE)
    assert redactor.redact_text(redacted) is redacted
    assert redactor.redact_text("    secrets = [") == "    secrets = ["


def test_each_replaced_secret_is_explained_by_its_place_and_rule() -> None:
    data = {"a": [{"token": "x", "url": "https://a:b@c/"}], "ssn": 5, "argv": ["curl", "-u", "a:b"], "t": PREFIXED[0]}
    assert redactor.explain(data) == [
        ("$.a[0].token", "suffixes: token"),
        ("$.a[0].url", "patterns: credentials in a URL"),
        ("$.argv[2]", "patterns: the user and the password of curl"),
        ("$.ssn", "names: ssn"),
        ("$.t", "tokens: GitHub token"),
    ]
    assert redactor.explain({"a": 1}) == []


def test_the_longest_name_decides() -> None:
    own = Redactor(extra_keys=["my_page_token"], keep_keys=["token"])

    assert own.redact({"token": 1, "access_token": 2, "my_page_token": 3}) == {
        "token": 1,
        "access_token": GONE,
        "my_page_token": GONE,
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mails": True}, "$: object contains unknown field `mails`"),
        ({"emails": "yes"}, "$.emails: expected `bool`, got `str`"),
        ({"extra_keys": "ssn"}, "$.extra_keys: expected `array`, got `str`"),
        ({"extra_keys": ["_"]}, "'_' is not the name of a key; it needs a letter"),
        ({"extra_patterns": ["(abc"]}, "'(abc' is not a regular expression: missing ), unterminated subpattern"),
        ({"extra_patterns": ["x*"]}, "'x*' matches the empty text"),
        ("yes", "$: expected `object`, got `str`"),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(config: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        from_config(config)

    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_a_text_where_a_list_belongs_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"extra_keys.*expected a list"):
        Redactor(extra_keys="ssn")


def test_a_config_says_what_the_arguments_say() -> None:
    assert from_config(False) is None
    default = from_config(True)
    own = from_config({"emails": True, "extra_keys": ["ssn"], "replacement": "-"})
    assert default is not None
    assert own is not None
    assert default.redact({"token": "x", "a": "b@c.de"}) == {"token": GONE, "a": "b@c.de"}
    assert own.redact({"ssn": "x", "a": "b@c.de"}) == {"ssn": "-", "a": "-"}


# What is remembered of clean documents must never let a dirty one pass.

fragments = st.sampled_from(
    [
        *("password", "token", "page_token", "Api-Key", "s3_key", "s4_key", "secret_string", "pwd", "x", "1", "23"),
        *("=", ": ", '"', "'", "\\", "--", "@", "://", "a:b@c", ",", ";", " ", "\n", "<", "[", "{", "}"),
        *(JWT, AWS_ID, PREFIXED[0], PREFIXED[0][:-20], "Bearer abc123", "Basic dXNlcjpwYXNz", "4111111111111111", "İK"),
        *("eyJ", "sk-", "AccountKey=", "x@y.zz", GONE, "cust-7", "cust-8", "\u0077", "\x00"),
    ]
)
texts = st.lists(fragments, max_size=6).map("".join) | st.text(max_size=8)
scalars = texts | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.none()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
redactors = [
    redactor,
    careful,
    Redactor(extra_keys=["s3_key"]),
    Redactor(extra_patterns=["cust-7"]),
    Redactor(replacement="7"),
    Redactor(emails=True, keep_keys=["token"]),
]


@pytest.mark.parametrize("one", redactors)
@pytest.mark.parametrize("encode", [msgspec.json.encode, lambda value: json.dumps(value).encode()])
@settings(max_examples=150)
@given(data=st.data())
@example(data=None)
def test_a_document_is_clean_when_redact_would_change_nothing(one: Redactor, encode: Any, data: Any) -> None:
    value = {"pass\u0000ord": 1} if data is None else data.draw(documents)
    for _ in range(2):  # anew, and remembered
        decoded = json.loads(encode(value))
        assert is_clean(one, encode(value)) == (one.redact(decoded) == decoded)
    assert json.loads(one.redact_encoded(encode(value))) == one.redact(decoded)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3), 2)))
def test_two_tokens_without_a_separator_are_both_redacted(order: tuple[int, int]) -> None:
    tokens = ["AKIAIOSFODNN7EXAMPLE", "ghp_" + "a1B2" * 9, "xoxb-123456789012-abcdefghijkl"]
    text = redactor.redact_text("the keys " + "".join(tokens[n] for n in order))
    assert not any(token in text for token in tokens)
    assert redactor.redact_text(text) == text


@example(value="AKIAIOSFODNN7EXAMPLEghp_" + "a1B2" * 9)
@given(value=documents)
def test_redacting_twice_is_redacting_once(value: Any) -> None:
    once = redactor.redact(value)
    assert redactor.redact(once) == once


@pytest.mark.parametrize(
    "escaped", [rb'{"pass\u0077ord":"x"}', rb'{"a":"pass\u0077ord=x"}', rb'{"a":"https:\/\/a:b@c"}']
)
def test_letters_that_are_written_as_escapes_hide_nothing(escaped: bytes) -> None:
    assert is_clean(redactor, rb'{"pass\u0000ord":"x"}')  # of the same shape, were digits all the same
    assert not is_clean(redactor, escaped)
    assert GONE.encode() in redactor.redact_encoded(escaped)


@pytest.mark.parametrize("pattern", DEFAULT_PATTERNS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_every_match_of_a_default_pattern_has_a_hint(pattern: str, data: st.DataObject) -> None:
    text = f"{data.draw(texts)} {data.draw(st.from_regex(pattern))} {data.draw(texts)}"

    alone = Redactor(keys=[], patterns=[pattern], names=[], expressions=[])
    assert re.search(pattern, text)
    assert alone._text.has_hint(text)
    assert redactor._text.has_hint(text)


@given(before=texts, name=st.sampled_from(DEFAULT_KEYS), separator=st.sampled_from(["", "_", "-", " ", "."]))
def test_every_name_has_a_hint(before: str, name: str, separator: str) -> None:
    assert redactor._text.has_hint(before + separator.join(name.split("_")).upper() + "=x")


@given(text=texts)
def test_no_default_rule_tells_one_digit_from_another(text: str) -> None:
    zeros = re.sub("[0-9]", "0", text)

    for one in (redactor, Redactor(emails=True)):
        assert (one.redact_text(text) == text) == (one.redact_text(zeros) == zeros)
        assert (one.redact({text: 1}) == {text: 1}) == (one.redact({zeros: 1}) == {zeros: 1})


def test_documents_that_differ_by_numbers_are_remembered_as_one() -> None:
    one = Redactor()

    assert is_clean(one, b'{"a":1,"b":"took 25 ms"}')
    assert len(one.known_clean) == 1
    assert is_clean(one, b'{"a":7,"b":"took 31 ms"}')
    assert len(one.known_clean) == 1
    assert one.redact_encoded(document := b'{"a":8,"b":"took 31 ms"}') is document


def test_what_is_remembered_is_bounded() -> None:
    one = Redactor()
    for number in range(5000):
        name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        assert is_clean(one, b'{"%b":1}' % name.encode())
    is_clean(one, b'"%b"' % (b"x" * 5000))

    assert len(one.known_clean) <= 2048
    assert len(one._seen_names) <= 4096
    assert max(map(len, one.known_clean)) <= 1024


@pytest.mark.parametrize("junk", [b"", b"{", b'{"a":', b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_never_clean(junk: bytes) -> None:
    assert not is_clean(redactor, junk)
    with pytest.raises(EventError):
        redactor.redact_encoded(junk)


def test_one_that_knows_more_keeps_the_rules() -> None:
    known = Redactor(extra_keys=["pet"], emails=True).knowing(["a.b", "a.b and c"])
    assert known.redact({"pet": "x", "text": "a.b and c, axb, a@example.com"}) == {
        "pet": "[redacted]",
        "text": "[redacted], axb, [redacted]",
    }


def test_threads_share_a_redactor() -> None:
    shared = Redactor()
    wrong: list[Any] = []

    def hammer(number: int) -> None:
        random_ = random.Random(number)
        for _ in range(2000):
            name = "".join(random_.choices("abc", k=6))
            if not is_clean(shared, b'{"%b":1}' % name.encode()) or is_clean(shared, b'{"%b_token":1}' % name.encode()):
                wrong.append(name)

    run_threads(*(partial(hammer, number) for number in range(4)))

    assert wrong == []


HOSTILE = [
    *("a", " ", "\\", '"', "'", "[", "{", "1", "=", ":", "/", "@", ".", "-", "_", ";", "é", "İ"),
    *("password", "password ", "password=", "password='", 'password=\\"', "password=[", "password=[]", "password>"),
    *(
        "password" + " " * 8,
        "password=a,",
        'token:\\\\\\"x\n',
        "--password ",
        "token: a;",
        "authorization: ",
        "cookie: a; ",
    ),
    *(
        "eyJ",
        "eyJ.",
        "eyJaaaaaaaa",
        ".eyJaaaaaaaa",
        "\\neyJaaaaaaaa",
        "eyJaaaaaaaa-",
        "AKIA",
        "ghp_",
        "sk-",
        "SG.",
        "SG.aaaa-",
    ),
    *(
        "://",
        "://a",
        "://a:",
        "a:b@",
        "://a:b/",
        ":a",
        "?sig=",
        "a@",
        "a@a.",
        "@a.a",
        "a.a@a-",
        "1 ",
        "1111 ",
        "1-1-",
        "4111 1",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN A ",
        "BEGIN PRIVATE KEY-----",
        "basic aaaa",
        "basic A",
        "bearer ",
        "xox",
    ),
    *("secret key ", "secretkey is ", "hooks.slack.com/services/", "AccountKey=", "api_", "api_key", "access-key="),
]


def seconds_for(one: Redactor, text: str) -> float:
    gc.collect()
    gc.disable()  # what other tests left on the heap costs a long text more than a short one
    try:
        began = time.thread_time()
        one.redact_text(text)
        return time.thread_time() - began
    finally:
        gc.enable()


@pytest.mark.parametrize("part", HOSTILE)
def test_time_grows_linearly_with_hostile_text(part: str) -> None:
    small = (part * 7_800)[:7_800] + "!"
    large = (part * 124_800)[:124_800] + "!"

    # Sixteen times the text; a quadratic rule takes 256 times as long, however often it is tried.
    assert any(seconds_for(careful, large) < 32 * seconds_for(careful, small) + 0.1 for _ in range(3))


@pytest.mark.parametrize("part", ["<token>x", "password=x ", "password='x ", '{"password":"', 'token:"a'])
def test_a_text_full_of_secrets_is_cut_after_some_and_leaks_none(part: str) -> None:
    short, long = (redactor.redact_text(f"begin {part * count} Zx9qKw7Lm2Vt") for count in (2_000, 50_000))

    assert short.startswith("begin ")
    assert "Zx9qKw7Lm2Vt" not in short + long
    assert len(long) <= len(short)


def test_a_token_as_a_name_is_found_among_many_names_that_differ_by_digits() -> None:
    """Names are checked many at once, and once for all digits."""
    token = "ghp_" + "a1B2" * 9
    for many in (
        {f"column_{number}": number for number in range(100)},
        {f"long_column_of_a_table_{n}": n for n in range(99)},
    ):
        one = Redactor()
        assert one.redact(many) is many
        assert token not in str(one.redact({**many, token: 1}))
        assert token not in str(Redactor().redact({**many, token: 1}))
        assert token not in str(Redactor(extra_patterns=["x9"]).redact({**many, token: 1}))


def test_a_pattern_with_a_digit_tells_names_apart_that_differ_by_digits() -> None:
    """One of many names has the digit."""
    names = {f"column_{number}": 1 for number in range(100)}

    assert [name for name in Redactor(extra_patterns=["n_77"]).redact(names) if "redacted" in name] == [
        "colum[redacted]"
    ]
