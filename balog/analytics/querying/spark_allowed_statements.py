"""The policy on statements for Spark: one statement that reads the tables and does nothing else.

The checked text is what Spark gets, with the same positions. Comments are blanked first, because the two
parsers may disagree on where one ends. A statement may only name the existing tables, and raw events of the given
sources as ``balog.`PATH```, which Spark sees as one name (``RAW``). Other paths (``csv.`/etc/passwd```), scripts
(``SELECT TRANSFORM … USING``) and functions that call Java or open a name from a text are rejected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from balog.analytics.querying.sources import RAW, check_length, find_source
from balog.common.errors import ConfigError
from balog.common.text import suggest

_FORBIDDEN_FUNCTIONS = {
    *("java_method", "reflect", "try_reflect"),  # any static method of any class on the class path
    *("identifier", "read_files", "cloud_files"),  # a table or a path, from a text
}
_ROWS_FROM = {"range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack",
              "json_tuple", "variant_explode", "variant_explode_outer"}  # fmt: skip
_ACTS = (exp.DDL, exp.DML, exp.Command, exp.Set, exp.Cache, exp.Into, exp.MultitableInserts, exp.QueryTransform)
_RAW_NAME = r"(?:balog|`balog`)\s*\.\s*`((?:[^`]|``)+)`"
_RAW_TABLE = re.compile(rf"{_RAW_NAME}|balog\s*\.\s*\w+", re.IGNORECASE)
_NAME = rf"({_RAW_NAME}|`[^`.]+`|\w+)"
_LOOKS = re.compile(rf"\s*(?:SHOW\s+TABLES|DESC(?:RIBE)?\s+(?:TABLE\s+)?{_NAME})[\s;]*", re.IGNORECASE)


class CheckedStatement(NamedTuple):
    """A statement that may run.

    Attributes:
        text: without comments and the semicolon at its end, with raw events as `` `balog.PATH` ``.
        paths: the paths of raw events in it.
        words: the names in it, in lower case; None if it may use all columns.
    """

    text: str
    paths: tuple[str, ...] = ()
    words: frozenset[str] | None = None


def check(sql: str, tables: Sequence[str] | None = None, sources: Sequence[str] | None = None) -> CheckedStatement:
    """Check a statement.

    Args:
        sql: a SELECT (also WITH, VALUES, FROM … SELECT), or SHOW TABLES, or DESCRIBE NAME.
        tables: the names of the tables; None if they are not known yet.
        sources: the files, folders, globs, URLs and topics whose raw events it may read.

    Raises:
        ConfigError: it is another statement, or reads, writes or calls something that is not allowed; one line with the
            position.
    """
    check_length(sql)
    looks = _LOOKS.fullmatch(sql)
    if looks:
        return _check_looks(sql, looks, tables, sources or ())
    body = _without_comments(sql)
    if not body.strip():
        raise _rejected("no statement; give a SELECT")
    tree = _parse(body)
    raw = sorted(_check_query(tree, tables, sources or ()), reverse=True)
    for start, end, path in raw:
        body = _with_one_name(body, start, end, path)
    paths = tuple(dict.fromkeys(path for *_, path in raw))
    if len({path.lower() for path in paths}) < len(paths):
        raise _rejected("two sources have names that differ in case only, which Spark does not; rename one")
    return CheckedStatement(body, paths, _words_of(tree))


def _check_looks(
    sql: str, looks: re.Match[str], tables: Sequence[str] | None, sources: Sequence[str]
) -> CheckedStatement:
    name, raw = looks.groups()
    text = sql.rstrip("; \t\r\n")
    if raw is not None:
        path = raw.replace("``", "`")
        find_source(path, sources)
        return CheckedStatement(_with_one_name(text, *looks.span(1), path), (path,))
    if name is not None:
        _check_name(name.strip("`"), tables, "")
    return CheckedStatement(text)


def _with_one_name(text: str, start: int, end: int, path: str) -> str:
    """Return a statement whose ``balog.`PATH``` is one name of the same width."""
    if _RAW_TABLE.fullmatch(text, start, end) is None:
        raise _rejected(f"write the source as balog.`{path:.200}`, in backticks")
    name = RAW + path.replace("`", "``")
    return f"{text[:start]}{f'`{name}`':{end - start}}{text[end:]}"


def _tokens(sql: str) -> list[Any]:
    from sqlglot.dialects import Spark

    try:
        return list(Spark().tokenize(sql))
    except SqlglotError:
        raise _rejected("a text, a name, a number or a comment is not valid or does not end") from None


def _without_comments(sql: str) -> str:
    tokens = _tokens(sql)
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
        raise _rejected(_explained(error)) from None
    except RecursionError:
        raise _rejected("nested too deep; write it with WITH") from None
    except (LookupError, AttributeError, TypeError, ValueError) as error:  # bugs of the parser
        raise _rejected(f"it cannot be understood ({type(error).__name__})") from None
    finally:
        quiet.setLevel(level)
    if len(statements) != 1:
        raise _rejected(f"{len(statements)} statements; give one")
    if isinstance(statements[0], exp.Column):
        raise _rejected("an expression is not a query; begin with SELECT")
    return statements[0]


def _check_query(tree: Any, tables: Sequence[str] | None, sources: Sequence[str]) -> list[tuple[int, int, str]]:
    """Check a query; return where it names raw events: start, end and path."""
    if not isinstance(tree, (exp.Query, exp.Values)) or isinstance(tree, _ACTS):
        raise _rejected(f"{_words(tree)} is not a query; SELECT, WITH, SHOW TABLES and DESCRIBE NAME are run")
    raw = []
    for node in tree.walk():
        if isinstance(node, _ACTS):
            raise _rejected(f"{_words(node)} inside of a question: it may only read the tables")
        if isinstance(node, exp.Table):
            span = _check_table(node, tables, sources)
            raw += [span] if span is not None else []
        elif isinstance(node, exp.Group) and not any(node.args.values()):
            raise _rejected("GROUP BY is not complete")
        elif isinstance(node, (exp.Anonymous, exp.Func)):
            name = _name_of(node)
            if name in _FORBIDDEN_FUNCTIONS:
                raise _rejected(f"the function {name} is not run{_where(node)}: it reaches beyond the tables")
    return raw


def _check_table(table: exp.Table, tables: Sequence[str] | None, sources: Sequence[str]) -> tuple[int, int, str] | None:
    database = table.args.get("db")
    if isinstance(table.this, exp.Func):
        name = _name_of(table.this)
        if name not in _ROWS_FROM:
            raise _rejected(f"no rows are read from the function {name}{_where(table)}")
    elif database is not None and database.name.lower() == "balog" and not table.args.get("catalog"):
        find_source(table.name, sources, _where(table.this))
        return database.meta["start"], table.this.meta["end"] + 1, table.name
    elif database or table.args.get("catalog"):
        raise _rejected(f"{table.name!r} is named with a place before it{_where(table)}; only the tables are read")
    elif isinstance(table.this, exp.Identifier):
        if not _is_cte(table):
            _check_name(table.name, tables, _where(table.this))
    else:
        raise _rejected(f"{table.sql('spark')!r} is not a table{_where(table)}")
    return None


def _words_of(tree: Any) -> frozenset[str] | None:
    """Return the names in a query in lower case; None if it uses all columns of a table without their names."""
    stars = [star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if stars or any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return None
    return frozenset(name.name.lower() for name in tree.find_all(exp.Identifier))


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
    """Return the position of a node, ``, line 2, column 8``; sqlglot counts to the end of a token."""
    for part in node.walk():
        if "line" in part.meta:
            meta = part.meta
            column = meta["col"] - meta["end"] + meta["start"]
            return f", line {meta['line']}, column {column}" if column > 0 else ""
    return ""


def _words(tree: Any) -> str:
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    if isinstance(tree, exp.QueryTransform):
        return "TRANSFORM … USING"
    return str(tree.key).upper()


def _name_of(function: Any) -> str:
    """Return a function's name in lower case."""
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return str(name).lower()


def _explained(error: SqlglotError) -> str:
    """Return where the parser stopped, in one line."""
    if not isinstance(error, ParseError) or not error.errors:
        return "it cannot be understood"
    stop = error.errors[0]
    return f"it cannot be understood at {str(stop.get('highlight'))!r:.60}, line {stop['line']}, column {stop['col']}"


def _rejected(reason: str) -> ConfigError:
    return ConfigError(reason, "SQL")
