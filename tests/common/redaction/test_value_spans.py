"""Values after a secret's name in text: each notation ends where its own parser says, and stays readable by it."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.redaction import Redactor
from balog.common.redaction.redactor import DEFAULT_KEYS

SECRET = "Zx9qKw7Lm2Vt"
redactor = Redactor()
GONE = "[redacted]"
PLACE = 'File "a.py", line 1, in b\n'


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        # triple quotes of TOML and Python
        (f'password = """{SECRET}"""\nuser = "a"', f'password = """{GONE}"""\nuser = "a"'),
        (f"password = '''\n{SECRET}\nmore''' # note", f"password = '''{GONE}''' # note"),
        (rf'{{"a": "password = \"\"\"{SECRET} x\"\"\" b"}}', rf'{{"a": "password = \"\"\"{GONE}\"\"\" b"}}'),
        (f'password = """{SECRET} "x', f'password = """{GONE}'),
        # HTML entities
        (f"password&#61;{SECRET} a", f"password={GONE} a"),
        (f"password&#x3d;{SECRET}&amp;a=1", f"password={GONE}&a=1"),
        (f"password&amp;#61;{SECRET} a", f"password={GONE} a"),
        (f"&quot;password&quot;:&quot;{SECRET}&quot;,&quot;a&quot;:1", f'"password":"{GONE}","a":1'),
        (f"&lt;password&gt;{SECRET}&lt;/password&gt;", f"<password>{GONE}</password>"),
        (f"&#112;assword&equals;{SECRET} a", f"password={GONE} a"),
        ("a &lt; b &amp;&amp; tokens&#61;3", "a &lt; b &amp;&amp; tokens&#61;3"),
        # a quote without its end, also in the line of an exception
        (f"ValueError: unclosed password='a {SECRET} at line 3", f"ValueError: unclosed password='{GONE}"),
        (f"a.b.ParserError: bad {{'password': 'a {SECRET} at 3", f"a.b.ParserError: bad {{'password': '{GONE}"),
        (f'INFO: unclosed password="{SECRET} and the rest', f'INFO: unclosed password="{GONE}'),
        (f"{PLACE}ValueError: password='a {SECRET}\n{SECRET}\n\nThe above exception was the direct cause of it",
         f"{PLACE}ValueError: password='{GONE}\nThe above exception was the direct cause of it"),
        (f'  |   {PLACE}  | ValueError: {{"password": "a {SECRET}\n  +--- 2 ---\n    | KeyError: 1',
         f'  |   {PLACE}  | ValueError: {{"password": "{GONE}\n    | KeyError: 1'),
        # JSON and repr: a bare value ends at the structure around it
        (f'{{"token":null,"password":"{SECRET}"}}', f'{{"token":null,"password":"{GONE}"}}'),
        (f'{{"otp":123456,"password":"{SECRET}"}}', f'{{"otp":"{GONE}","password":"{GONE}"}}'),
        (f"{{'token':None,'password':'{SECRET}'}}", f"{{'token':None,'password':'{GONE}'}}"),
        (rf"{{\"token\":null,\"password\":\"{SECRET}\"}}", rf"{{\"token\":null,\"password\":\"{GONE}\"}}"),
        (f"{{'Authorization': None, 'X-Api-Key': '{SECRET}'}}", f"{{'Authorization': None, 'X-Api-Key': '{GONE}'}}"),
        (f'{{"cookie": null, "password": "{SECRET}"}}', f'{{"cookie": null, "password": "{GONE}"}}'),
        (f"{{'auth': ('u', '{SECRET}')}}", f"{{'auth': '{GONE}'}}"),
        (f"{{'auth': Basic('u', '{SECRET}'), 'a': 1}}", f"{{'auth': '{GONE}', 'a': 1}}"),
        (f"{{'password': ['a]', '{SECRET}'], 'a': 1}}", f"{{'password': '{GONE}', 'a': 1}}"),
        (f"{{token:17,'password':'{SECRET}'}}", f"{{token:{GONE},'password':'{GONE}'}}"),
        ('{"pass":12,"fail":3}', f'{{"pass":"{GONE}","fail":3}}'),
        # headers and parameters
        (f"Authorization: None, password: {SECRET}", f"Authorization: None, password: {GONE}"),
        (f"a=1&cookie={SECRET}&note=kept", f"a=1&cookie={GONE}&note=kept"),
        (f"cookie=sid={SECRET}; theme=dark", f"cookie={GONE}"),
        # options, YAML, XML
        (f"run --pass {SECRET} --auth {SECRET} --otp 123456 -v", f"run --pass {GONE} --auth {GONE} --otp {GONE} -v"),
        (f"run --db-pass {SECRET}", f"run --db-pass {GONE}"),
        (f'["--pass","{SECRET}","-v"]', f'["--pass","{GONE}","-v"]'),
        ("usage: [--password PASSWORD] [-v]", f"usage: [--password {GONE}] [-v]"),
        (f"db_pass: {SECRET}\nuserSsn: {SECRET}\n", f"db_pass: {GONE}\nuserSsn: {GONE}\n"),
        (f"password: |\n  {SECRET}\n  more\nname: x", f"password: |\n  {GONE}\nname: x"),
        (f"<pass>{SECRET}</pass>", f"<pass>{GONE}</pass>"),
        (f"<db_pass type=\"x\" a='1'>{SECRET}</db_pass>", f"<db_pass type=\"x\" a='1'>{GONE}</db_pass>"),
        # indexes, JSON in CSV, colors of a terminal
        (f"password[0]={SECRET}&a=1", f"password[0]={GONE}&a=1"),
        (f'1,"{{""password"":""{SECRET}"",""a"":""b""}}"', f'1,"{{""password"":""{GONE}"",""a"":""b""}}"'),
        (f"\x1b[36mpassword\x1b[0m=\x1b[35m{SECRET}\x1b[0m a", f"\x1b[36mpassword\x1b[0m=\x1b[35m{GONE}\x1b[0m a"),
        (f"password:\x1b[1;31m '{SECRET}'\x1b[0m", f"password:\x1b[1;31m '{GONE}'\x1b[0m"),
        # pairs, names beside values, errors of pydantic
        (f"got [('password', '{SECRET}'), ('a', 'b')]", f"got [('password', '{GONE}'), ('a', 'b')]"),
        (f'[{{"name":"password","value":"{SECRET}"}}]', f'[{{"name":"password","value":"{GONE}"}}]'),
        (f"password\n  Too short [type=x, input_value='{SECRET}', input_type=str]",
         f"password\n  Too short [type=x, input_value='{GONE}', input_type=str]"),
        # SQL and commands
        (f"[SQL: UPDATE users SET password=? WHERE id=?]\n[parameters: ('{SECRET}', 1)]",
         f"[SQL: UPDATE users SET password=? WHERE id=?]\n[parameters: {GONE}]"),
        (f'CREATE USER a IDENTIFIED BY "{SECRET}"', f'CREATE USER a IDENTIFIED BY "{GONE}"'),
        (f"ALTER USER a PASSWORD E'{SECRET}'", f"ALTER USER a PASSWORD E'{GONE}'"),
        ("ALTER USER a PASSWORD $$" + f"{SECRET}$$", f"ALTER USER a PASSWORD $${GONE}$$"),
        (f"SET PASSWORD FOR a = '{SECRET}'", f"SET PASSWORD FOR a = '{GONE}'"),
        (f"jdbc:oracle:thin:scott/{SECRET}@h:1521:x", f"jdbc:oracle:thin:{GONE}@h:1521:x"),
        (f"sshpass -p {SECRET} ssh h", f"sshpass -p {GONE} ssh h"),
        (f"mysql -uroot -p{SECRET} db", f"mysql -uroot -p{GONE} db"),
        (f"docker login -u x -p {SECRET}", f"docker login -u x -p {GONE}"),
    ],
)  # fmt: skip
def test_a_value_ends_where_its_notation_ends_it(text: str, redacted: str) -> None:
    assert redactor.redact_text(text) == redacted
    assert redactor.redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "pass: 12 fail: 3",
        "['id', 'password', 'created_at']",
        '{"columns": ["password", "name"]}',
        "UPDATE t SET a = 1 WHERE password = ?",
        "UPDATE t SET password=%s, token=$1, a=%(password)s",
        "the password is wrong",
        "SELECT password FROM users -- a comment",
        "[SQL: SELECT a FROM t WHERE a=?]\n[parameters: ('x', 1)]",
        "mysql -p",
        'x(password="", user="ab", note="")',
        "mysql --port 3306",
    ],
)
def test_what_is_no_value_stays(text: str) -> None:
    assert redactor.redact_text(text) == text


CODE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    {}\nValueError: x\n'


@pytest.mark.parametrize(
    "line", ['f(password="aa" "{}")', "f(password='aa'+'{}', x=1)", 'f(password="aa" + b"{}")', 'f(password="{}")']
)
def test_all_literals_of_a_source_line_are_replaced(line: str) -> None:
    redacted = redactor.redact_text(CODE.format(line.format(SECRET)))
    assert SECRET not in redacted
    assert redacted.count("\n") == CODE.count("\n")
    assert "f(password=" in redacted


NAMES = st.sampled_from([*DEFAULT_KEYS[:30], "auth", "otp", "dbPassword", "db_pass"])
PLAIN = st.sampled_from(["name", "rows", "url", "note", "id", "a"])
SECRETS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(10**8, 10**10),
    st.text("abcXYZ 019\"'\\,;:&{}[]()\n=%", min_size=3, max_size=12).map(lambda text: f"{SECRET}{text}{SECRET}"),
    st.just([SECRET, "b"]),
    st.just({"v": SECRET}),
)
KEPT = st.one_of(st.none(), st.integers(0, 99), st.text("abc ", min_size=1, max_size=6), st.just({"deep": [1, "x"]}))
DOCUMENTS = st.lists(st.tuples(NAMES, SECRETS) | st.tuples(PLAIN, KEPT), min_size=1, max_size=5).map(dict)
STYLES: dict[str, tuple[Any, Any]] = {
    "json": (json.dumps, json.loads),
    "compact": (lambda value: json.dumps(value, separators=(",", ":")), json.loads),
    "indented": (lambda value: json.dumps(value, indent=2), json.loads),
    "nested": (
        lambda value: json.dumps(json.dumps(value, separators=(",", ":"))),
        lambda text: json.loads(json.loads(text)),
    ),
    "repr": (repr, ast.literal_eval),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=150)
@given(document=DOCUMENTS)
def test_documents_in_text_lose_their_secrets_and_nothing_else(style: str, document: dict[str, Any]) -> None:
    """The oracle is the notation's own parser: it reads the result, and finds the other members as they were."""
    write, read = STYLES[style]
    redacted = redactor.redact_text(write(document))
    found = read(redacted)
    assert SECRET not in redacted
    assert list(found) == list(document)
    for name, value in document.items():
        is_kept = name in ("name", "rows", "url", "note", "id", "a") or value in (None, True, False)
        assert found[name] == (value if is_kept else GONE), name
