"""Rewrite a SCHEMA by the rules that change its records: properties, ``required``, key and bookmark properties.

A rule that changes a key property ends the stream, because rows with the same key overwrite each other in a table.
"""

from __future__ import annotations

from functools import partial

from balog.broker.editor import PipeError
from balog.broker.records.compiled_rule import CompiledRule
from balog.broker.records.schemas import (
    Node,
    drop_property,
    mask_property,
    put_property,
    reach_schema,
    rename_properties,
)


class SchemaRewriter:
    """One schema, rewritten by each rule of its stream.

    Args:
        stream: the stream's name.
        root: the schema; changed in place.
        keys: the key properties; None if the SCHEMA has none.
        bookmarks: the bookmark properties; None if the SCHEMA has none.

    Attributes:
        unknown: errors for parts of rules that name a property missing from the schema.
    """

    def __init__(self, stream: str, root: Node, keys: list[str] | None, bookmarks: list[str] | None) -> None:
        self._stream = stream
        self._rule: CompiledRule
        self.root = root
        self.keys = keys
        self.bookmarks = bookmarks
        self.unknown: list[str] = []

    def rewrite(self, rule: CompiledRule) -> None:
        """Apply a rule to the schema.

        Raises:
            PipeError: a key would be lost, or two properties would have the same name.
        """
        self._rule = rule
        if not rule.rewrites:
            return
        self._set()
        self._mask()
        self._drop()
        self._rename()

    def _set(self) -> None:
        root = self.root
        given = {name: setting.schema(root) for name, setting in self._rule.settings.items()}
        for name, setting in self._rule.settings.items():
            if setting.is_constant:
                self._check_key(name, f"set.{name}", "a constant makes its rows the same")
            reach_schema(root, root, (), partial(put_property, name=name, schema=given[name], root=root))

    def _mask(self) -> None:
        root = self.root
        for name, steps, mask in self._rule.masks:
            if not mask.keeps_apart:
                self._check_key(steps[0], f"mask.{name}", "this mask makes different rows the same; take sha256")
            exists = reach_schema(root, root, steps[:-1], partial(mask_property, name=steps[-1], root=root, mask=mask))
            self._note(exists, f"mask.{name}")

    def _drop(self) -> None:
        root = self.root
        for name, steps in self._rule.drops:
            self._check_key(steps[0], f"drop.{name}", "its rows can't be told apart without it")
            if self.bookmarks and len(steps) == 1:
                self.bookmarks = [bookmark for bookmark in self.bookmarks if bookmark != steps[0]]
            exists = reach_schema(root, root, steps[:-1], partial(drop_property, name=steps[-1]))
            self._note(exists, f"drop.{name}")

    def _rename(self) -> None:
        root = self.root
        for parent, names in self._rule.renames.items():
            try:
                exists = reach_schema(root, root, parent, partial(rename_properties, names=names))
            except KeyError as error:
                raise PipeError(
                    f"{self._rule.path}.rename: two properties of {self._stream} would be called {error.args[0]}; "
                    "rename or drop one of them"
                ) from None
            if not parent:
                self.keys = self.keys and [names.get(key, key) for key in self.keys]
                self.bookmarks = self.bookmarks and [names.get(bookmark, bookmark) for bookmark in self.bookmarks]
            self._note(exists, "rename." + ".".join((*parent, *list(names)[:1])))

    def _check_key(self, name: str, part: str, reason: str) -> None:
        if self.keys and name in self.keys:
            raise PipeError(
                f"{self._rule.path}.{part}: {name} is a key property of {self._stream}, and {reason}; leave it out"
            )

    def _note(self, exists: bool, part: str) -> None:
        if not exists and "properties" in self.root and self._rule.config.stream == self._stream:
            self.unknown.append(f"{self._rule.path}.{part}: the schema of {self._stream} has no such property")
