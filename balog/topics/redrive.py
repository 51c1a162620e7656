"""Select dead letters to redrive, and patch them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from balog.common import config as configs
from balog.common.errors import ConfigError, EventError, split_refusal
from balog.event import Event, decode, encode
from balog.filters import Expression
from balog.topics.base import DeadLetter

_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")
_PATH = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[\d{1,6}\])*")
_IN_HEADER = ("channel", "level", "timestamp", "composition", "context")

Step = str | int


class PatchFile(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A patch in a file; see ``Patch``. Values to set are any JSON."""

    examples: ClassVar = (
        {
            "set": {"payload.currency": "EUR"},
            "compute": {"payload.total": "payload.amount * 1.19"},
            "unset": ["payload.debug"],
        },
    )

    set: Annotated[dict[str, Any], Meta(description="Path → value; what is missing on the way is made.")] = {}
    compute: Annotated[
        dict[str, str], Meta(description="Path → expression over the event as it was; NULL, and infinity, set nothing.")
    ] = {}
    unset: Annotated[tuple[str, ...], Meta(description="Paths to take away.")] = ()


class Patch:
    """Sets, computes and removes fields of an event.

    Fields are named as in an expression: ``payload.a.b[0]``, ``context.key``, ``channel``, ``level``, ``timestamp``,
    ``composition``.

    Args:
        set: texts ``path=value``; the value is JSON, or else text; or path → value. Missing parents are created.
        unset: paths; a missing field is no error.
        compute: path → expression over the original event; NULL, and a number that is not finite, set nothing.

    Raises:
        ConfigError: a text, a path or an expression is invalid.
    """

    def __init__(
        self,
        set: Sequence[str] | Mapping[str, Any] = (),
        unset: Sequence[str] = (),
        compute: Mapping[str, str] | None = None,
    ) -> None:
        pairs = set.items() if isinstance(set, Mapping) else map(_split, set)
        self._set = [(_steps(path), value) for path, value in pairs]
        self._unset = [_steps(path) for path in unset]
        self._compute = [(_steps(path), Expression(text, gives="any")) for path, text in (compute or {}).items()]

    @classmethod
    def load(cls, path: str) -> Patch:
        """Read a patch from a file, see ``PatchFile``.

        Raises:
            ConfigError: the file can't be read, or is not a patch.
        """
        patch_file = configs.load(path, PatchFile)
        try:
            patch = cls(patch_file.set, patch_file.unset, patch_file.compute)
        except ConfigError as error:
            raise ConfigError(error.reason, path) from None
        if not patch:
            raise ConfigError("changes nothing; give set, compute or unset", path)
        return patch

    def __bool__(self) -> bool:
        return bool(self._set or self._unset or self._compute)

    def apply(self, body: bytes) -> bytes:
        """Return an event's bytes with the patch applied.

        Raises:
            EventError: the result is not an event, or a path leads through a value without fields.
        """
        if not self:
            return body
        event = decode(body)
        try:
            document = msgspec.json.decode(encode(event))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise EventError(f"cannot be read: {split_refusal(error)[0]}") from None
        for steps, value in self._set:
            _put(document, steps, value)
        for steps, expression in self._compute:
            value = expression.evaluate(event)
            if value is not None and not (isinstance(value, float) and not math.isfinite(value)):
                _put(document, steps, value)
        for steps in self._unset:
            _drop(document, steps)
        return encode(decode(msgspec.json.encode(document)))


class Redrive(Struct):
    """Decides which dead letters to redrive, for ``Topic.redrive``, and counts its decisions.

    Dead letters that are not events stay, because they would fail again.

    Attributes:
        dry_run: only count and report, and keep all dead letters.
        report: called with each redriven dead letter and its new bytes.
        refuse: called with each dead letter that the patch can't be applied to, and the reason; it stays.
    """

    where: Expression | None
    patch: Patch
    dry_run: bool
    report: Callable[[DeadLetter, bytes], object]
    refuse: Callable[[DeadLetter, EventError], object]
    chosen: int = 0
    unwanted: int = 0
    no_events: int = 0
    refused: int = 0

    def __call__(self, dead_letter: DeadLetter) -> bytes | None:
        """Return the bytes to redrive, or None."""
        try:
            event: Event = decode(dead_letter.body)
        except EventError:
            self.no_events += 1
            return None
        if self.where is not None and not self.where.matches(event):
            self.unwanted += 1
            return None
        try:
            body = self.patch.apply(dead_letter.body)
        except EventError as error:
            self.refused += 1
            self.refuse(dead_letter, error)
            return None
        self.chosen += 1
        self.report(dead_letter, body)
        return None if self.dry_run else body


def _split(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{text!r:.100}: expected PATH=VALUE, such as payload.currency=EUR")
    try:
        return path, msgspec.json.decode(value.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return path, value


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    if _PATH.fullmatch(path):
        steps = [name or int(index) for name, index in _STEP.findall(path)]
    if steps and steps[0] in _IN_HEADER and (steps[0] == "context") == (len(steps) > 1):
        return ["header", *steps]
    if len(steps) > 1 and steps[0] == "payload":
        return steps
    raise ConfigError(
        f"{path!r:.100}: not a member that can be changed; expected payload.NAME, context.NAME, channel, level,"
        " timestamp or composition"
    )


def _put(document: Any, steps: Sequence[Step], value: Any) -> None:
    here = document
    for step, following in itertools.pairwise(steps):
        if isinstance(here, dict) and isinstance(step, str):
            here = here.setdefault(step, {} if isinstance(following, str) else [])
        else:
            here = _item(here, step)
    last = steps[-1]
    if isinstance(here, dict) and isinstance(last, str):
        here[last] = value
    elif isinstance(here, list) and last == len(here):
        here.append(value)
    else:
        _item(here, last)  # raises
        here[last] = value


def _drop(document: Any, steps: Sequence[Step]) -> None:
    here = document
    try:
        for step in steps[:-1]:
            here = _item(here, step)
        _item(here, steps[-1])
    except EventError:
        return
    del here[steps[-1]]


def _item(here: Any, step: Any) -> Any:
    try:
        if isinstance(here, dict) if isinstance(step, str) else isinstance(here, list):
            return here[step]
    except (KeyError, IndexError):
        pass
    raise EventError(f"there is no {step!r} to go through")
