"""Planted secrets are nowhere in the line, in any encoding; planted other values all are."""

import base64
import collections
import json
import random
import string
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import pytest

import balog
from balog.event import encode
from balog.testing import capture_events
from tests.oracles.effort import seeds

Login = collections.namedtuple("Login", ["user", "password"])
KEYS = ["password", "API_KEY", "accessToken", "db_pass", "session", "auth", "x-api-key", "clientSecret", "ssn"]
HEADERS = [b"Authorization", b"x-api-key", b"Cookie"]
PREFIXES = ["gh" + "p_", "gl" + "pat-", "sk" + "-", "hv" + "s.", "xo" + "xb-", "NR" + "AK-"]


class Plants:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.secrets: list[str] = []
        self.others: list[str] = []

    def word(self, kind: str, length: int = 40) -> str:
        return kind + "".join(self.random.choices(string.ascii_letters, k=length))

    def secret(self) -> str:
        self.secrets.append(self.word("Zq"))
        return self.secrets[-1]

    def other(self) -> str:
        self.others.append(self.word("ok", 10))
        return self.others[-1]

    def leaf(self) -> Any:
        secret, key = self.secret(), self.random.choice(KEYS)
        return self.random.choice(
            [
                lambda: {key: secret, "note": self.other()},
                lambda: {key.encode(): secret, "note": self.other()},
                lambda: {key: secret.encode()},
                lambda: {key: [secret, {"inner": secret}]},
                lambda: {"name": key, "value": secret},
                lambda: {"Name": key, "Value": secret},
                lambda: [(self.random.choice(HEADERS), secret.encode()), (b"host", b"example")],
                lambda: [("page", "one"), (key, secret)],
                lambda: Login(self.other(), secret),
                lambda: f"https://bob:{secret}@example.com/{self.other()}",
                lambda: f"GET /x?page=one&{key}={secret}&z={self.other()}",
                lambda: quote(json.dumps({key: secret}), ""),
                lambda: f"user {self.other()} {json.dumps({key: secret})}",
                lambda: f"{self.other()} { {key: secret}!r}",
                lambda: f"{self.other()} {self.random.choice(PREFIXES)}{secret} {self.other()}",
                lambda: f"Authorization: Bearer {secret}",
                lambda: ["curl", "-u", f"bob:{secret}", self.other()],
                lambda: ["tap", "--api-key", secret, self.other()],
            ]
        )()

    def value(self, depth: int) -> Any:
        turn = self.random.random()
        if depth == 0 or turn < 0.3:
            return self.leaf() if self.random.random() < 0.5 else self.other()
        if turn < 0.6:
            inner = {f"part{number}": self.value(depth - 1) for number in range(self.random.randrange(1, 4))}
            return self.random.choice([inner, collections.OrderedDict(inner), MappingProxyType(inner)])
        items = [self.value(depth - 1) for _ in range(self.random.randrange(1, 4))]
        return self.random.choice([items, tuple(items)])


@pytest.mark.parametrize("seed", seeds(300))
def test_planted_secrets_never_appear_and_everything_else_survives(seed: int) -> None:
    plants = Plants(seed)
    payload = {"value": [plants.value(3)], "note": plants.other(), "keep": {"has_token": False, "token": None}}
    with capture_events(strict=False) as events:
        balog.get_logger("a").info("x", payload=payload)
    line = encode(events.one()).decode()
    for secret in plants.secrets:
        forms = [secret, quote(secret, ""), secret.encode().hex(), base64.b64encode(secret.encode()).decode()[:-4]]
        assert not [form for form in forms if form in line], line
    assert [other for other in plants.others if other not in line] == []
    assert json.loads(line)["payload"]["keep"] == {"has_token": False, "token": None}
