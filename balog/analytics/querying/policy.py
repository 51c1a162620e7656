"""The policy on statements: one statement that reads the tables and does nothing else.

The checked text is exactly what the engine gets, with the same positions. Comments are blanked first, because the two
parsers may disagree on where one ends. A statement may only name the existing tables. Paths (``csv.`/etc/passwd```),
scripts (``SELECT TRANSFORM … USING``) and functions that call Java or open a name from a text are rejected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from balog.errors import ConfigError
from balog.suggestions import suggest

MAX_SQL = 1 << 20
"""The longest statement, in characters."""

_FORBIDDEN_FUNCTIONS = {
    *("java_method", "reflect", "try_reflect"),  # any static method of any class on the class path
    *("identifier", "read_files", "cloud_files"),  # a table or a path, from a text
}
_ROWS_FROM = {"range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack",
              "json_tuple", "variant_explode", "variant_explode_outer"}  # fmt: skip
_ACTS = (exp.DDL, exp.DML, exp.Command, exp.Set, exp.Cache, exp.Into, exp.MultitableInserts, exp.QueryTransform)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(?:\s+(?:EXTENDED|FORMATTED|COST|CODEGEN)\b)?", re.IGNORECASE)
_DESCRIBE_QUERY = re.compile(r"\s*DESC(?:RIBE)?\s+(?:QUERY\s+)?(?=SELECT\b|WITH\b)", re.IGNORECASE)
_NAME = r"(`[^`.]+`|\w+)"
_LOOKS = re.compile(
    rf"\s*(?:SHOW\s+(?:TABLES|VIEWS)(?:\s+(?:LIKE\s+)?'[\w*| ]*')?|SHOW\s+COLUMNS\s+(?:IN|FROM)\s+{_NAME}"
    rf"|DESC(?:RIBE)?\s+(?:TABLE\s+)?(?:EXTENDED\s+)?{_NAME})[\s;]*",
    re.IGNORECASE,
)


def check(sql: str, tables: Sequence[str] | None = None) -> str:
    """Return the statement for Spark: without comments and the semicolon at its end.

    Args:
        sql: a SELECT (also WITH, VALUES, FROM … SELECT), or SHOW TABLES, SHOW COLUMNS, DESCRIBE or EXPLAIN.
        tables: the names of the tables; None if they are not known yet.

    Raises:
        ConfigError: it is another statement, or reads, writes or calls something that is not allowed; one line with the
            position.
    """
    if len(sql) > MAX_SQL:
        raise _rejected(f"a statement of {len(sql):,} characters; at most {MAX_SQL:,} are read")
    looks = _LOOKS.fullmatch(sql)
    if looks:
        for name in filter(None, looks.groups()):
            _check_name(name.strip("`"), tables, "")
        return sql.rstrip("; \t\r\n")
    head = _EXPLAIN.match(sql) or _DESCRIBE_QUERY.match(sql)
    before = "" if head is None else head.group()
    # blanked, not removed, so that positions stay the same
    body = _without_comments(_blank(before) + sql[len(before) :])
    if not body.strip():
        raise _rejected("no statement; give a SELECT")
    _check_query(_parse(body), tables)
    return before + body[len(before) :]


def _without_comments(sql: str) -> str:
    from sqlglot.dialects import Spark

    try:
        tokens = Spark().tokenize(sql)
    except SqlglotError as error:
        raise _rejected(f"{_first_line(error)}; a text, a name or a comment does not end") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    pieces, end = [], 0
    for token in tokens:
        if token.token_type is TokenType.HINT:
            raise _rejected(f"hints (/*+ … */) are not read, line {token.line}; leave them out")
        if token.start < end:  # a suffix of a number (10L) is three tokens at one place
            continue
        pieces += [_blank(sql[end : token.start]), sql[token.start : token.end + 1]]
        end = token.end + 1
    return "".join(pieces)


def _blank(gap: str) -> str:
    return re.sub(r"[^\n]", " ", gap)


def _parse(sql: str) -> Any:
    quiet = logging.getLogger("sqlglot")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)  # it logs on stderr when it parses a statement as plain text
    try:
        statements = [tree for tree in sqlglot.parse(sql, read="spark") if tree is not None]
    except SqlglotError as error:
        raise _rejected(_first_line(error)) from None
    except RecursionError:
        raise _rejected("nested too deep; write it with WITH") from None
    except (LookupError, AttributeError, TypeError, ValueError) as error:  # bugs of the parser
        raise _rejected(f"it cannot be understood ({type(error).__name__})") from None
    finally:
        quiet.setLevel(level)
    if len(statements) != 1:
        raise _rejected(f"{len(statements)} statements; give one")
    return statements[0]


def _check_query(tree: Any, tables: Sequence[str] | None) -> None:
    if not isinstance(tree, (exp.Query, exp.Values)) or isinstance(tree, _ACTS):
        raise _rejected(f"{_words(tree)} is not a query; SELECT, WITH, SHOW, DESCRIBE and EXPLAIN are run")
    for node in tree.walk():
        if isinstance(node, _ACTS):
            raise _rejected(f"{_words(node)} inside of a question: it may only read the tables")
        if isinstance(node, exp.Table):
            _check_table(node, tables)
        elif isinstance(node, (exp.Anonymous, exp.Func)):
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
            if name.lower() in _FORBIDDEN_FUNCTIONS:
                raise _rejected(f"the function {name} is not run{_where(node)}: it reaches beyond the tables")


def _check_table(table: exp.Table, tables: Sequence[str] | None) -> None:
    if isinstance(table.this, exp.Func):
        name = table.this.name if isinstance(table.this, exp.Anonymous) else table.this.sql_name()
        if name.lower() not in _ROWS_FROM:
            raise _rejected(f"no rows are read from the function {name}{_where(table)}")
    elif table.args.get("db") or table.args.get("catalog"):
        raise _rejected(f"{table.name!r} is named with a place before it{_where(table)}; only the tables are read")
    elif isinstance(table.this, exp.Identifier):
        if not _is_cte(table):
            _check_name(table.name, tables, _where(table.this))
    else:
        raise _rejected(f"{table.sql('spark')!r} is not a table{_where(table)}")


def _is_cte(table: exp.Table) -> bool:
    """Return whether the name is defined by a WITH around it: earlier in the list, or by itself if RECURSIVE."""
    child: Any = table
    for node in _above(table):
        if isinstance(node, exp.Query):
            ctes = list(node.ctes)
            if isinstance(child, exp.With):
                seen = next(index for index, cte in enumerate(ctes) if cte in set(_above(table)))
                ctes = ctes[: seen + bool(child.recursive)]
            if table.name.lower() in {cte.alias.lower() for cte in ctes}:
                return True
        child = node
    return False


def _above(node: Any) -> Iterator[Any]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _check_name(name: str, tables: Sequence[str] | None, where: str) -> None:
    if tables is not None and name.lower() not in {table.lower() for table in tables}:
        raise _rejected(f"no table {name!r}{where}{suggest(name, sorted(tables), limit=20)}")


def _where(node: Any) -> str:
    for part in node.walk():
        if "line" in part.meta:
            return f", line {part.meta['line']}, column {part.meta['col'] - len(part.name) + 1}"
    return ""


def _words(tree: Any) -> str:
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    if isinstance(tree, exp.QueryTransform):
        return "TRANSFORM … USING"
    return str(tree.key).upper()


def _first_line(error: SqlglotError) -> str:
    found = getattr(error, "errors", None)
    if not found:
        return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0]
    description = re.sub(r"<Token .*text: (.*?), line: .*>", r"\1", found[0]["description"]).rstrip(".")
    description = description.replace("got SENTINEL", "came to the end")
    return f"{description}, line {found[0]['line']}, column {found[0]['col']}"


def _rejected(reason: str) -> ConfigError:
    return ConfigError(reason, "SQL")
