"""The script of mutants changes one place at a time."""

import ast

from tests.mutants import mutants

SOURCE = '''def first(items, limit):
    """Return the first items, "é" too."""
    items.sort()
    if "é" in items and not limit < 3:
        return items[: limit + 1]
    return None
'''


def test_each_mutant_is_one_change_that_python_can_read() -> None:
    changed = {(mutant.line, mutant.before, mutant.after) for mutant in mutants(SOURCE)}
    assert changed == {
        (3, "items.sort()", "pass"),
        (4, '"é" in items and not limit < 3', "('é' in items or not limit < 3)"),
        (4, '"é" in items', "('é' not in items)"),
        (4, "not limit < 3", "(limit < 3)"),
        (4, "limit < 3", "(limit <= 3)"),
        (5, "return items[: limit + 1]", "return None"),
        (5, "limit + 1", "(limit - 1)"),
    }
    for mutant in mutants(SOURCE):
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(SOURCE))
