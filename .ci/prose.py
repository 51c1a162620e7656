"""Measure the sentences of the documentation, and report pages that are hard to read.

Run by ``make lint`` and ``make docs``::

    python .ci/prose.py                        # problems only: long sentences, and pages of long sentences
    python .ci/prose.py --table                # one line a page as well, and the mean of all
    python .ci/prose.py --long 25 docs/a.md    # every sentence of more than 25 words

Sentences end with ``.``, ``!`` or ``?``, and with the paragraph or list item that they are in. Headings, tables and
code blocks are left out; a piece of code inside a sentence counts as one word. Exits with 1 when a sentence or a page
is above its limit.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]

CHECKED = ("README.md", "CONTRIBUTING.md", "docs")

SENTENCE_WORDS = 40
PAGE_MEAN = 18.0

SENTENCE_END = re.compile(r"""(?<=[.!?])["')\]”]*\s+|\s·\s""")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|etc|No)\.$")
WORD = re.compile(r"\S*[A-Za-z0-9\x00]\S*")
CODE = "\x00"  # stands for a piece of code


@dataclass(frozen=True)
class Sentence:
    """A sentence and the line of the page that its paragraph begins on."""

    line: int
    text: str
    words: int


@dataclass(frozen=True)
class Page:
    """The sentences of a page."""

    name: str
    sentences: tuple[Sentence, ...]

    @property
    def words(self) -> int:
        """Words of all sentences."""
        return sum(each.words for each in self.sentences)

    @property
    def mean(self) -> float:
        """Words per sentence."""
        return self.words / max(len(self.sentences), 1)

    @property
    def longest(self) -> int:
        """Words of the longest sentence."""
        return max((each.words for each in self.sentences), default=0)

    @property
    def reading_ease(self) -> float:
        """Flesch's reading ease: 0 is very hard, 60 plain English, 100 very easy."""
        syllables = sum(count_syllables(word) for each in self.sentences for word in WORD.findall(each.text))
        return 206.835 - 1.015 * self.mean - 84.6 * syllables / max(self.words, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="pages or folders, instead of those in CHECKED")
    parser.add_argument("--table", action="store_true", help="print one line a page, and the mean of all")
    parser.add_argument("--long", type=int, metavar="N", help="print every sentence of more than N words")
    given = parser.parse_args()
    pages = [read_page(path) for path in files(given.paths or CHECKED)]
    if given.table:
        print_table(pages)
    for page in pages if given.long else ():
        for each in page.sentences:
            if each.words > given.long:
                print(f"{page.name}:{each.line}: {each.words} words: {shown(each.text)}")
    problems = [problem for page in pages for problem in check(page)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def files(paths: list[str] | tuple[str, ...]) -> Iterator[Path]:
    for each in paths:
        path = ROOT / each
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path]


def read_page(path: Path) -> Page:
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    return Page(name, tuple(sentences(path.read_text(encoding="utf-8"))))


def check(page: Page) -> Iterator[str]:
    """Yield the sentences that are too long, and the mean of the page if it is."""
    for each in page.sentences:
        if each.words > SENTENCE_WORDS:
            yield (
                f"{page.name}:{each.line}: {each.words} words in one sentence, more than {SENTENCE_WORDS}: "
                f"{shown(each.text)}"
            )
    if round(page.mean, 1) > PAGE_MEAN:
        yield f"{page.name}: {page.mean:.1f} words a sentence, more than {PAGE_MEAN:g}"


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a Markdown text."""
    left_out = None  # the token that ends what is left out
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if left_out is None and token.type in ("heading_open", "table_open"):
            left_out = token.type.replace("open", "close")
        elif token.type == left_out:
            left_out = None
        elif token.type == "inline" and left_out is None:
            line = (token.map or [0])[0] + 1
            for sentence in split(plain_text(token.children or [])):
                if words := len(WORD.findall(sentence)):
                    yield Sentence(line, sentence, words)


def plain_text(tokens: list[Token]) -> str:
    """Return the text of the tokens of a paragraph, with a mark for each piece of code."""
    parts = []
    for token in tokens:
        if token.type == "text":
            parts.append(token.content)
        elif token.type == "code_inline":
            parts.append(CODE)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)


def split(paragraph: str) -> Iterator[str]:
    begun = ""
    for part in SENTENCE_END.split(paragraph):
        begun = f"{begun} {part}" if begun else part
        if not ABBREVIATION.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun


def shown(sentence: str) -> str:
    text = sentence.replace(CODE, "`…`")
    return text if len(text) <= 120 else f"{text[:119]}…"


@cache
def count_syllables(word: str) -> int:
    """Count the syllables of a word by its hyphenation; a number or a piece of code is one."""
    import pyphen  # not for the checks, which need none of it

    letters = re.sub(r"[^A-Za-z]", "", word)
    return len(pyphen.Pyphen(lang="en_US", left=1, right=1).positions(letters)) + 1


def print_table(pages: list[Page]) -> None:
    width = max((len(page.name) for page in pages), default=0)
    print(f"{'page':{width}}  words  sentences  mean  longest  reading ease")
    everything = Page("all pages", tuple(sentence for page in pages for sentence in page.sentences))
    for page in [*pages, everything]:
        print(
            f"{page.name:{width}}  {page.words:5}  {len(page.sentences):9}  {page.mean:4.1f}  {page.longest:7}"
            f"  {page.reading_ease:12.0f}"
        )


if __name__ == "__main__":
    sys.exit(main())
