"""RLIKE against Python's ``re``, on generated patterns and texts."""

import random
import re

import pytest

from balog.filters.patterns import compile_regex
from tests.oracles.effort import seeds

ATOMS = ["a", "b", "c", ".", "\\d", "\\w", "\\s", "[ab]", "[^a]", "[A-b]", "[b-]", "[-.a]", "[a-c-1]",
         "[^\\s\\d]", "[\\W_]", "[^\\D1]", "\\S", "\\W", "\\D", "[é\\x42]", "k", "\\t", "\\.", "é",
         "\\x41", "\n", " "]  # fmt: skip
ANCHORS = ["^", "$", "\\b", "\\B", "\\A"]
REPEATS = ["*", "+", "?", "{2}", "{0,3}", "{1,}", "*?", "+?", "{0}"]


def generated(chance: random.Random, depth: int = 3) -> str:
    parts = []
    for _ in range(chance.randrange(1, 4)):
        kind = chance.random()
        if kind < 0.15:
            parts.append(chance.choice(ANCHORS))
            continue
        if kind < 0.45 and depth:
            inner = "|".join(generated(chance, depth - 1) for _ in range(chance.randrange(1, 4)))
            part = chance.choice(["(", "(?:", "(?i:"]) + inner + ")"
        else:
            part = chance.choice(ATOMS)
        parts.append(part + (chance.choice(REPEATS) if chance.random() < 0.4 else ""))
    return "".join(parts)


@pytest.mark.parametrize("seed", seeds(20))
def test_rlike_finds_what_re_finds(seed: int):
    chance = random.Random(seed)
    tried = 0
    while tried < 150:
        pattern = ("(?i)" if chance.random() < 0.1 else "") + generated(chance)
        try:
            regex = compile_regex(pattern)
        except ValueError:
            continue
        tried += 1
        expected = re.compile(pattern, re.ASCII)
        for _ in range(20):
            text = "".join(chance.choice("aabcAB1_ .é\n\t-kK\u212a٣") for _ in range(chance.randrange(1, 12)))
            assert regex.search(text) == (expected.search(text) is not None), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (".*.*.*.*x", "a" * 65_536),
        ("(?:a|a)" * 100 + "b", "a" * 65_536),
        ("a?" * 200 + "a" * 200 + "b", "a" * 65_536),
        ("[a-z]{1,4000}[a-z]{1,4000}Z", "b" * 65_536),
        ("(a|b)?" * 10 + ".*a.{1,20}c", "ab" * 30_000),
    ],
)
def test_a_hostile_pattern_ends_on_a_hostile_text(pattern: str, text: str):
    """``re`` alone would take from minutes to longer than the universe is old."""
    assert not compile_regex(pattern).search(text)
