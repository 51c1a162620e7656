from typing import Any, Literal

import msgspec
import pytest

from balog import configure, get_logger
from balog.common.errors import ConfigError
from balog.log.values import validation
from balog.log.values.validation import PayloadError, declare
from balog.testing import capture_events


@pytest.fixture(autouse=True)
def declarations_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "_checks", {})


@pytest.fixture
def refund() -> None:
    @declare
    class Refund(msgspec.Struct, tag_field="cls_type", tag="refund"):
        amount: int
        reason: str = ""


SCHEMA = {
    "type": "object",
    "required": ["amount"],
    "properties": {"amount": {"type": "integer", "minimum": 1}, "token": {"type": "integer"}},
    "additionalProperties": True,
}
GOOD = {"cls_type": "refund", "amount": 3}


def logged(payload: Any, validate: Any) -> dict[str, Any]:
    with capture_events(strict=False) as events:
        configure("stderr", validate=validate)
        get_logger("a").info("x", payload=payload)
    return events.one().payload


@pytest.mark.parametrize("validate", ["off", "tag", "raise"])
@pytest.mark.parametrize("by", ["struct", "schema"])
def test_a_payload_that_is_what_it_says_is_written_as_it_is(by: str, validate: str, request: Any) -> None:
    if by == "struct":
        request.getfixturevalue("refund")
    else:
        declare("refund", SCHEMA)

    assert logged(GOOD, validate) == GOOD


def test_an_instance_of_the_declared_struct_is_a_payload() -> None:
    @declare
    class Job(msgspec.Struct, tag_field="cls_type", tag="job"):
        rows: int

    assert logged(Job(3), "raise") == {"cls_type": "job", "rows": 3}


@pytest.mark.usefixtures("refund")
class TestMode:
    WRONG: dict[str, Any] = {"cls_type": "refund", "amount": "3"}  # noqa: RUF012

    def test_off_looks_at_nothing(self) -> None:
        assert logged(self.WRONG, "off") == self.WRONG

    def test_tag_says_what_is_wrong_beside_what_was_logged(self) -> None:
        assert logged(self.WRONG, "tag") == {
            **self.WRONG,
            "problem": "is no refund: expected `int`, got `str` at $.amount",
        }

    def test_tag_keeps_what_was_wrong_before(self) -> None:
        payload = logged({**self.WRONG, "x": object()}, "tag")

        assert payload["problem"].startswith(
            "object has no JSON form, its repr is written, at $.x; is no refund: expected"
        )

    def test_raise_tells_the_caller(self) -> None:
        with pytest.raises(PayloadError, match=r"^payload is no refund: expected `int`, got `str` at \$\.amount$"):
            logged(self.WRONG, "raise")

    @pytest.mark.parametrize("payload", [{"cls_type": "other"}, {"n": 1}, {"cls_type": 5}, None])
    def test_what_nobody_declared_passes(self, payload: Any) -> None:
        assert "problem" not in logged(payload, "raise")


def test_a_schema_s_refusal_names_the_rule_and_never_the_value() -> None:
    declare("refund", SCHEMA)
    wrong = logged({"cls_type": "refund", "amount": 1, "token": "s3cret"}, "tag")
    missing = logged({"cls_type": "refund"}, "tag")

    assert wrong["problem"] == 'is no refund: is not of type "integer" at $.token'
    assert missing["problem"] == 'is no refund: "amount" is a required property at $'


def test_a_struct_s_refusal_never_says_the_value() -> None:
    @declare
    class Login(msgspec.Struct, tag_field="cls_type", tag="login"):
        password: Literal["a", "b"] = "a"
        note: str = ""

        def __post_init__(self) -> None:
            if self.note:
                raise ValueError(f"not {self.note}")

    word, check = ({"cls_type": "login", **wrong} for wrong in ({"password": "s3cret"}, {"note": "s3cret"}))

    assert logged(word, "tag")["problem"] == "is no login: invalid enum value at $.password"
    assert logged(check, "tag")["problem"] == "is no login: its own check raised ValueError"
    with pytest.raises(PayloadError) as refused:
        logged(word, "raise")
    assert "s3cret" not in str(refused.value)


def test_types_are_checked_before_secrets_are_taken_out() -> None:
    declare("refund", SCHEMA)

    assert logged({"cls_type": "refund", "amount": 1, "token": 5}, "raise")["amount"] == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("x",), "declare takes a msgspec Struct, or a name and a JSON Schema"),
        ((int,), "declare takes a msgspec Struct, or a name and a JSON Schema"),
        (("x", {"type": "thing"}), "payload type 'x': $.type: not a JSON Schema: "),
        ((type("Plain", (msgspec.Struct,), {}),), "Plain needs tag_field='cls_type' and a tag"),
    ],
)
def test_what_cannot_be_declared_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        declare(*given)
    assert str(refused.value).startswith(said)
    assert "x" not in validation._checks


@pytest.mark.usefixtures("refund")
def test_a_name_is_declared_once() -> None:
    with pytest.raises(ConfigError, match="'refund' is declared already"):
        declare("refund", SCHEMA)
