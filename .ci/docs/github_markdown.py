"""Markdown as GitHub reads it, for Python-Markdown: names of code blocks, and lists inside lists."""

from __future__ import annotations

import re

INFO = re.compile(r"^([ ]*(?:```+|~~~+))(\w+) (\S.*)$", re.MULTILINE)  # language and file name, or a word for the tests
CAPTION = re.compile(r"^`([^`\n]+)`\n(?=```\w+ \1$)", re.MULTILINE)
ITEM = re.compile(r"(?:[-*+]|\d+[.)])[ ]+")
INDENT = 4  # what Python-Markdown asks for a list inside a list


def convert(markdown: str) -> str:
    """Return the text with the title of a block as an attribute, and lists inside lists indented by four.

    The line with a block's file name above it, for GitHub, becomes this title.
    """
    return indent_lists(INFO.sub(_attributes, CAPTION.sub("", markdown)))


def _attributes(info: re.Match[str]) -> str:
    fence, language, name = info.groups()
    return f'{fence}{{.{language} title="{name}"}}' if "." in name else f"{fence}{language}"


def indent_lists(markdown: str) -> str:
    lines = []
    width = 0  # of the marker of the list item that the line may belong to; 0 outside of lists
    fence = ""
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        inside = bool(width) and indent >= width
        if not fence and text and not inside:
            item = ITEM.match(text)
            width = len(item[0]) if item and not indent else 0
        if text.startswith(("```", "~~~")):
            fence = "" if fence else text[:3]
        lines.append(" " * (INDENT - width) + line if inside and 1 < width < INDENT and text else line)
    return "\n".join(lines)
