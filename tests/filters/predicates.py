"""Random predicates as text, for comparison with engines that speak SQL."""

from dataclasses import dataclass, field
from random import Random

STRINGS = [
    "",
    "a",
    "ab",
    "abc",
    "B",
    "aB",
    " a ",
    "a%c",
    "a_c",
    "1",
    "1.5",
    " 2 ",
    "1e2",
    "-3",
    "true",
    "FALSE",
    "it's",
]
NUMBERS = [-2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.25, 100.0]
PATTERNS = ["", "%", "a%", "%c", "%b%", "_", "a_c", "%a%c%", "a!%c", "a!_%", "_%_", "%!!"]


@dataclass
class Predicates:
    """Write predicates over these names; ``more`` says what this engine has beside plain SQL."""

    random: Random
    texts: list[str]
    numbers: list[str]
    bools: list[str]
    extra: list[str] = field(default_factory=list)
    """Predicates that may stand as they are."""

    def condition(self, depth: int = 3) -> str:
        pick = self.random.choice
        if depth <= 0:
            return pick([*self.bools, "TRUE", "FALSE", *self.extra])
        kind = self.random.randrange(16)
        if kind < 4:
            return f"{self.condition(depth - 1)} {pick(['AND', 'OR'])} {self.condition(depth - 1)}"
        if kind == 4:
            return f"NOT ({self.condition(depth - 1)})"
        if kind == 5:
            return f"({self.condition(depth - 1)}) IS {pick(['', 'NOT '])}{pick(['NULL', 'TRUE', 'FALSE'])}"
        if kind == 6 and self.extra:
            return pick(self.extra)
        if kind == 7:
            test, one, other = (self.condition(depth - 1) for _ in range(3))
            return f"CASE WHEN {test} THEN {one} {pick(['', f'ELSE {other} '])}END"
        if kind == 8:
            return f"COALESCE({self.condition(depth - 1)}, {self.condition(depth - 1)})"
        value = pick([self.text, self.number])
        if kind == 9:
            return f"{value(depth - 1)} {pick(['', 'NOT '])}BETWEEN {value(depth - 1)} AND {value(depth - 1)}"
        if kind == 10:
            choices = ", ".join(pick([value(0), value(0), "NULL"]) for _ in range(self.random.randint(1, 4)))
            return f"{value(depth - 1)} {pick(['', 'NOT '])}IN ({choices})"
        if kind == 11:
            return f"{value(depth - 1)} IS {pick(['', 'NOT '])}{pick(['NULL', 'DISTINCT FROM ' + value(depth - 1)])}"
        if kind == 12:
            like = f"{pick(['', 'NOT '])}{pick(['LIKE', 'ILIKE'])} {quote(pick(PATTERNS))} ESCAPE '!'"
            return f"{self.text(depth - 1)} {like}"
        if kind == 13:
            function = pick(["STARTSWITH", "ENDSWITH", "CONTAINS"])
            return f"{function}({self.text(depth - 1)}, {self.text(depth - 1)})"
        op = pick(["=", "<>", "!=", "<", "<=", ">", ">="])
        return f"{value(depth - 1)} {op} {value(depth - 1)}"

    def text(self, depth: int) -> str:
        pick = self.random.choice
        if depth <= 0:
            return pick([pick(self.texts), pick(self.texts), quote(pick(STRINGS))])
        kind = self.random.randrange(8)
        if kind == 0:
            return f"{pick(['LOWER', 'UPPER', 'TRIM', 'LTRIM', 'RTRIM'])}({self.text(depth - 1)})"
        if kind == 1:
            return f"({self.text(depth - 1)} || {self.text(depth - 1)})"
        if kind == 2:
            return f"SUBSTR({self.text(depth - 1)}, {self.random.randint(1, 4)}, {self.random.randint(0, 3)})"
        if kind == 3:
            return f"COALESCE({self.text(depth - 1)}, {self.text(depth - 1)})"
        if kind == 4:
            return f"NULLIF({self.text(depth - 1)}, {self.text(depth - 1)})"
        if kind == 5:
            return f"CASE {self.number(depth - 1)} WHEN {self.number(0)} THEN {self.text(0)} ELSE {self.text(0)} END"
        return self.text(0)

    def number(self, depth: int) -> str:
        pick = self.random.choice
        if depth <= 0:
            return pick([pick(self.numbers), pick(self.numbers), f"{pick(NUMBERS):e}", str(self.random.randint(-3, 9))])
        kind = self.random.randrange(9)
        if kind < 3:
            if self.random.random() < 0.4:
                return f"({self.number(depth - 1)} {pick(['/', '%'])} NULLIF({self.number(depth - 1)}, 0))"
            signs = [pick(["+", "-", "*"]) for _ in range(2)]
            return f"({self.number(depth - 1)} {signs[0]} {self.number(depth - 1)} {signs[1]} {self.number(0)})"
        if kind == 3:
            return f"ABS({self.number(depth - 1)})"
        if kind == 4:
            return f"ROUND({self.number(depth - 1)}, {self.random.randint(0, 2)})"
        if kind == 5:
            return f"LENGTH({self.text(depth - 1)})"
        if kind == 6:
            return f"TRY_CAST({self.text(depth - 1)} AS DOUBLE)"
        if kind == 7:
            return f"(- {self.number(depth - 1)})"
        return f"NULLIF({self.number(depth - 1)}, {self.number(0)})"


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
