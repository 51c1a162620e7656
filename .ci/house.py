"""Check what ruff does not: words that readers would have to translate, sizes, and class names used twice.

Run by ``make lint``::

    python .ci/house.py                 # everything in CHECKED, and sizes by room with --sizes
    python .ci/house.py balog/sinks     # one room

A room is a folder or a file below ``balog/``. Exits with 1 when it reports anything.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CHECKED = (
    "balog",
    "docs",
    "plugins",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
)
"""What ``make lint`` checks."""

CLASS_LINES = 300
FUNCTION_LINES = 60
FILE_LINES = 350
FOLDER_ENTRIES = 20
ROOM_LINES = {"balog": 69_645, "balog/tap": 13_294, "plugins": 3_943, "tests": 77_277}
"""Lines of code that a room has at most. A limit only ever goes down, except that a package may move to ``plugins``."""

FOREIGN_WRITES = 0.9
"""Writes to attributes of other objects in 1,000 lines of ``balog/`` at most: a state has one owner."""

DOCS_WORDS = 91_451
"""Words of ``docs/`` at most; likewise."""

# word of an identifier or a file name -> what to write instead
IDENTIFIERS = {
    "desk": "consumer queue",
    "lane": "worker, topic writer or stream sync",
    "lanes": "workers, topic writers or stream syncs",
    "hand": "in-flight batch",
    "letter": "dead letter",
    "letters": "dead letters",
    "straggler": "delayed retry",
    "stragglers": "delayed retries",
    "telling": "failure logging",
    "told": "reported",
    "junk": "invalid lines",
    "pump": "delivery loop",
    "crew": "worker pool",
    "outlet": "sink adapter",
    "heads": "message prefixes",
    "figures": "stats",
    "news": "throttled notices",
    "salvage": "fallback encoding",
    "salvaged": "encoded by the fallback",
    "trouble": "error",
    "troubles": "errors",
    "guest": "source stream",
    "guests": "source streams",
    "cold": "not cached",
    "desks": "consumer queues",
    "pumps": "delivery loops",
    "crews": "worker pools",
    "outlets": "sink adapters",
    "giver": "shared source",
    "beside": "a noun",
    "said": "declared, configured or reported",
    "farewell": "shutdown",
    "patience": "timeout",
    "pace": "rate",
    "parcel": "message or batch entry",
    "parcels": "messages or batch entries",
    "death": "dead letter",
    "deaths": "dead letters",
    "bury": "dead-letter",
    "squeeze": "compact",
    "hurry": "flush now",
    "hush": "silence",
    "senseless": "never fires",
    "spoilt": "corrupt",
}
VARIABLES = {"found", "one", "made", "place"}  # a variable is the noun of what it holds
NAMES = {"given_by": "source_stream"}  # whole identifiers
FORMATS = {"said"}  # a key of a config or of an event, whose names users write
DEAD = {"letter", "letters"}  # allowed after "dead"

# phrase in docs, docstrings and comments -> what to write instead
PHRASES = {
    r"\bdesks?\b": "consumer queue",
    r"\blanes?\b": "sink worker, topic writer or stream sync",
    r"\bin hand\b": "in flight",
    r"(?<!dead )(?<!dead-)(?<!capital )\bletters\b(?! and digits)(?!, digits)": "dead letters",
    r"\bstragglers?\b": "delayed retries",
    r"(?<![`\"'$.])\bjunk\b(?![`\"':])": "invalid lines",
    r"\bcrews?\b": "worker pool",
    r"\boutlets?\b": "sink adapter",
    r"\bsalvag\w+": "fallback encoding",
    r"\bgivers?\b": "shared source",
    r"\bguests?\b": "source stream",
    r"\bpumps?\b": "delivery loop",
    r"(?<![`\w-])told\b(?! apart)": "reported",
    r"(?<![`\w-])telling\b(?! apart)": "failure logging",
    r"(?<![`\w])figures\b": "stats, or numbers",
    r"(?<![`\w])troubles?\b": "error",
    r"(?<![`\w])patience\b": "timeout",
    r"\bnews\b": "throttled notices",
    r"\bheads\b": "message prefixes",
    r"\bbut for\b": "except for",
    r"\bthat which\b": "the noun",
    r"\bwhich is what\b": "a sentence of its own",
    r"\bthat (?:is|are) (?-i:none)\b": "not one",
    r", so\.": "a sentence that begins with its subject",
    r"(?:^|[.:] |\(|\"{3}|# |- )(?-i:Of) (?:an?|the|several|those|all|two|these|each)\b": "an inverted opening",
}
ANY_PHRASE = re.compile("|".join(PHRASES), re.IGNORECASE)
SUMMARY = re.compile(r"(Give|Tell|Say|Take|What|Whether|Who|That|Of|How|Where|Let|Hold)\b")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", help="folders or files, instead of those in CHECKED")
    parser.add_argument("--sizes", action="store_true", help="print the lines of code of each room")
    given = parser.parse_args()
    if given.sizes:
        print_sizes()
    rooms = given.rooms or CHECKED
    problems = [problem for path in files(rooms) for problem in check(path)]
    problems += repeated_classes(rooms)
    problems += large_rooms()
    problems += crowded_folders()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def files(rooms: list[str] | tuple[str, ...]) -> Iterator[Path]:
    for room in rooms:
        path = ROOT / room
        yield from sorted([*path.rglob("*.py"), *path.rglob("*.md")]) if path.is_dir() else [path]


def check(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    yield from (f"{name}: name the file without {word!r}: {new}" for word, new in bad_words(path.stem))
    if path.suffix == ".md":
        for number, line in enumerate(text.split("\n"), 1):
            yield from bad_phrases(f"{name}:{number}", line)
        return
    if (length := text.count("\n")) > FILE_LINES and name.parts[0] == "balog":
        yield f"{name} has {length} lines, more than {FILE_LINES}"
    tree = ast.parse(text)
    fields = {
        each.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        for identifier in names_of(node):
            if identifier in VARIABLES and isinstance(node, ast.Name) and node not in fields:
                yield f"{name}:{node.lineno}: {identifier}: name the variable after what it holds"
            if identifier in NAMES:
                yield f"{name}:{node.lineno}: {identifier} is {NAMES[identifier]}"  # type: ignore[attr-defined]
            for word, new in () if identifier in FORMATS else bad_words(identifier):
                yield f"{name}:{node.lineno}: {identifier}: {word!r} is {new}"  # type: ignore[attr-defined]
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            limit = CLASS_LINES if isinstance(node, ast.ClassDef) else FUNCTION_LINES
            size = code_lines(node)
            if size > limit:
                yield f"{name}:{node.lineno}: {node.name} has {size} lines of code, more than {limit}"
            summary = ast.get_docstring(node) or ""
            if not isinstance(node, ast.ClassDef) and SUMMARY.match(summary) and not is_property(node):
                yield f"{name}:{node.lineno}: {node.name}: begin the docstring with a verb such as Return or Raise"
    yield from prose(name, text)


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.alias) and node.asname:
        yield node.asname


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(getattr(each, "id", getattr(each, "attr", "")).endswith("property") for each in node.decorator_list)


def bad_words(identifier: str) -> Iterator[tuple[str, str]]:
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]
    for before, word in zip(["", *words], words, strict=False):
        if word in IDENTIFIERS and not (word in DEAD and before == "dead"):
            yield word, IDENTIFIERS[word]


def bad_phrases(where: str, line: str) -> Iterator[str]:
    for pattern, new in PHRASES.items() if ANY_PHRASE.search(line) else ():
        if found := re.search(pattern, line, re.IGNORECASE):
            yield f"{where}: {found[0]!r} is {new}"


def prose(name: Path, text: str) -> Iterator[str]:
    """Yield the bad phrases of comments and strings of several words."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
            for offset, line in enumerate(token.string.split("\n")):
                yield from bad_phrases(f"{name}:{token.start[0] + offset}", line)


def code_lines(node: ast.AST) -> int:
    """Count the lines of a node that hold code: not its decorators, docstrings, comments or empty lines."""
    lines: set[int] = set()
    decorators = {id(each) for each in getattr(node, "decorator_list", [])}
    docstrings = {
        id(each.body[0])
        for each in ast.walk(node)
        if isinstance(each, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and each.body
        and isinstance(each.body[0], ast.Expr)
        and isinstance(each.body[0].value, ast.Constant)
        and isinstance(each.body[0].value.value, str)
    }
    pending = [node]
    while pending:
        each = pending.pop()
        if id(each) in docstrings or id(each) in decorators:
            continue
        if isinstance(each, ast.expr | ast.stmt | ast.arg | ast.alias | ast.keyword | ast.excepthandler):
            lines.update((each.lineno, each.end_lineno or each.lineno))
            if isinstance(each, ast.Constant | ast.JoinedStr):
                lines.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
        pending += ast.iter_child_nodes(each)
    return len(lines)


def repeated_classes(rooms: list[str] | tuple[str, ...]) -> Iterator[str]:
    """Yield the public class names of the rooms that another class of balog has, too."""
    where: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "balog").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(ROOT)))
    for name, paths in sorted(where.items()):
        if len(paths) > 1 and any(path.startswith(tuple(rooms)) for path in paths if rooms):
            yield f"{name} is the name of several classes: {', '.join(paths)}"


def large_rooms() -> Iterator[str]:
    """Yield the rooms that have more lines of code, or words, than their limit."""
    for room, limit in ROOM_LINES.items():
        size = sum(map(code_lines, room_trees(room)))
        if size > limit:
            yield f"{room} has {size:,} lines of code, more than {limit:,}"
        if room == "balog":
            writes = 1000 * sum(map(foreign_writes, room_trees(room))) / size
            if writes > FOREIGN_WRITES:
                yield f"balog writes to other objects' attributes {writes:.1f} times in 1,000 lines of code"
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").rglob("*.md"))
    if words > DOCS_WORDS:
        yield f"docs has {words:,} words, more than {DOCS_WORDS:,}"


def room_trees(room: str) -> Iterator[ast.Module]:
    for path in (ROOT / room).rglob("*.py"):
        yield ast.parse(path.read_text(encoding="utf-8"))


def foreign_writes(tree: ast.Module) -> int:
    """Count the places that set or delete an attribute of anything but ``self`` and ``cls``."""
    return sum(
        isinstance(node, ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and getattr(node.value, "id", "") not in {"self", "cls"}
        for node in ast.walk(tree)
    )


def crowded_folders() -> Iterator[str]:
    """Yield the folders below ``balog/`` that have too many entries to be one idea."""
    for folder in sorted({path.parent for path in (ROOT / "balog").rglob("*.py")} - {ROOT / "balog"}):
        entries = [path for path in folder.iterdir() if path.name != "__pycache__"]
        if len(entries) > FOLDER_ENTRIES:
            yield f"{folder.relative_to(ROOT)} has {len(entries)} entries, more than {FOLDER_ENTRIES}"


def print_sizes() -> None:
    total = 0
    for room in sorted((ROOT / "balog").iterdir()):
        paths = sorted(room.rglob("*.py")) if room.is_dir() else [room] if room.suffix == ".py" else []
        if size := sum(code_lines(ast.parse(path.read_text(encoding="utf-8"))) for path in paths):
            print(f"{size:7,} {room.relative_to(ROOT)}")
            total += size
    print(f"{total:7,} balog")


if __name__ == "__main__":
    sys.exit(main())
