"""Where secrets stand in text: tokens of well-known forms, and whatever follows a telling name (``password=…``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from balog.errors import ConfigError

__all__ = ["EMAIL", "HINTS", "SecretNames", "SecretText", "has_card_number"]

# A start that is no part of a longer word; an escape that was written out (\n) counts as white space.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"

HINTS: dict[str, tuple[str, ...]] = {
    # Authorization values, but not prose about them
    r"\b(?:[Bb]earer|BEARER)\s{1,4}(?!(?i:tokens?|auth\w{0,20}|scheme|header|realm)\b)(?P<secret>[\w.~+/=-]{6,})": (
        "bearer",
    ),
    r"\b(?:[Bb]asic|BASIC)\s{1,4}(?=\S[a-z]*[A-Z0-9+/=])(?P<secret>[A-Za-z0-9+/]{6,}={0,2})": ("basic",),
    # JSON web tokens, signed or encrypted; they start only where a run of their letters does, which keeps this linear
    r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}": ("j(?<=eyj)",),
    # AWS: key ids, and secret keys that prose announces
    _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])": (
        "k(?<=ak)ia",
        "s(?<=as)ia",
        "b(?<=ab)ia",
        "c(?<=ac)ca",
    ),
    r"[Ss]ecret(?:[ _-]?[Aa]ccess)?[ _-]?[Kk]ey(?:\s{1,4}is)?\s{1,4}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])": (
        "c(?<=sec)ret",
    ),
    # URLs with credentials: user:password@, the same with a slash in it (which a port has not), one long word@
    r":(?:\\?/){2}(?P<secret>[^\s/?#@:\"'<>]*:[^\s/\"'<>]*"
    r"|[^\s/?#@:\"'<>]*:(?!\d{1,5}/)[^\s@\"'<>]{1,256}"
    r"|[^\s/?#@:\"'<>]{20,})@": ("@",),
    # signatures in URLs; connection strings of Azure; hooks of Slack
    r"[?&;](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential)|auth)=(?P<secret>[^\s&#\"'<>]+)": (
        "=(?<=sig=)",
        "=(?<=signature=)",
        "=(?<=credential=)",
        "=(?<=auth=)",
    ),
    r"AccountKey=(?P<secret>[^;\s\"'&]+)": ("c(?<=ac)countkey=",),
    r"hooks\.slack\.com/services/(?P<secret>[\w/-]+)": (r"k(?<=hook)s\.slack",),
    # private keys, also when the text ends before they do
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
    r"(?P<secret>(?s:.*?)(?=-----END [A-Z ]{0,40}PRIVATE KEY)|(?s:.*))": ("-----begin",),
    # tokens that their makers gave a prefix: GitHub, Slack, Stripe, OpenAI and its like, GitLab, Google, npm, PyPI,
    # Hugging Face, DigitalOcean, SendGrid, Shopify
    _START + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{20,}"
    r"|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|sk-[\w-]{20,}|glpat-[\w-]{20,}|AIza[\w-]{35}|ya\d\d\.[\w-]{20,}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}|hf_[A-Za-z0-9]{30,}|dop_v\d_[0-9a-f]{64}"
    r"|SG\.[\w-]{20,}\.[\w-]{20,}|shp[a-z]{2}_[0-9a-fA-F]{32})": (
        *("_(?<=gh[pousr]_)", "_(?<=pat_)", "_(?<=[srp]k_)", "_(?<=npm_)", "_(?<=hf_)", "_(?<=dop_)"),
        *("_(?<=shp[a-z][a-z]_)", "xox", "xapp-", "-(?<=sk-)", "-(?<=glpat-)", "-(?<=pypi-)", "z(?<=aiz)a"),
        *(r"\.(?<=ya\d\d\.)", r"\.(?<=sg\.)"),
    ),
}
"""Each default pattern with hints: one of them is found in the small letters of every text where the pattern is found.

A hint begins with its rarest character, taken literally: so all hints together are one search that is done with most
characters at a glance. No pattern tells one digit from another; ``Redactor.redact_encoded`` builds on that."""

EMAIL = r"(?<![\w.%+'-])[\w.%+'-]+@(?:[\w-]{1,63}\.){1,10}[^\W\d_]{2,}"

_SEPARATORS = re.compile(r"[\s_.\-\"'()\[\]<>]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\s_.\-A-Z]+")
_LONGEST_NAME = 100


def _fold(name: str) -> str:
    return _SEPARATORS.sub("", name[-_LONGEST_NAME:].lower()).rstrip("0123456789")


def _expression(words: Iterable[str]) -> str:
    return r"[_\-. ]?".join(words)


class SecretNames:
    """Names whose values are secret.

    A name fits when it *ends* with a listed one; capitals, ``_ - .``, brackets, quotes, spaces and digits at the end
    don't count, so ``token`` stands for ``GITHUB_TOKEN``, ``accessToken``, ``user[token]`` and ``token2``, not for
    ``tokens`` or ``token_count``. When several listed names fit, the longest decides.

    Args:
        rules: names, and whether they are a secret's. Of two rules for one name the later counts.

    Raises:
        ConfigError: a name without a letter.
    """

    def __init__(self, rules: Iterable[tuple[str, bool]]) -> None:
        listed = {_fold(name): (name, is_secret) for name, is_secret in rules}
        if "" in listed:
            raise ConfigError(f"{listed[''][0]!r} is no name of a key; it needs a letter")
        self._folded = sorted(listed, key=len, reverse=True)
        self._is_secret = {folded: is_secret for folded, (_, is_secret) in listed.items()}
        secret_ones = [folded for folded in self._folded if self._is_secret[folded]]
        shortest = [one for one in secret_ones if not any(one != end and one.endswith(end) for end in secret_ones)]
        words = [[word.lower() for word in _WORDS.findall(listed[one][0].rstrip("0123456789"))] for one in shortest]
        self.expression = "|".join(_expression(map(re.escape, name)) for name in words)
        """A regular expression that finds the end of each such name in a text of small letters."""
        found = {"_".join(name): re.compile(_expression(map(re.escape, name))) for name in words}
        self.hints = [
            _hint(name)
            for name in words
            if not any(part != "_".join(name) and found[part].search("_".join(name)) for part in found)
        ]
        """As in ``HINTS``: one of them is found wherever a name is."""

    def __contains__(self, name: str) -> bool:
        folded = _fold(name)
        return next((self._is_secret[end] for end in self._folded if folded.endswith(end)), False)

    @property
    def tell_digits_apart(self) -> bool:
        """Whether another digit in a name could make a difference."""
        return any(char.isdigit() for end in self._folded for char in end)


_RAREST_FIRST = "zjqxkvbpgwyfmcudlhrsnioate"


def _hint(words: list[str]) -> str:
    """Give a name's expression turned about the rarest letter of its first word."""
    first = words[0]
    at = min(range(len(first)), key=lambda place: _RAREST_FIRST.find(first[place]))
    before = f"(?<={re.escape(first[: at + 1])})" if at else ""
    return _expression([first[at] + before + re.escape(first[at + 1 :]), *map(re.escape, words[1:])])


def _any_of(hints: Iterable[str]) -> re.Pattern[str]:
    by_first: dict[str, dict[str, None]] = {}
    for hint in hints:
        first = hint[: 2 if hint.startswith("\\") else 1]
        by_first.setdefault(first, {})[hint[len(first) :]] = None
    return re.compile("|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in by_first.items()) or r"(?!)")


_QUOTE = re.compile(r"[bBuUrR]{0,2}(\\{0,7})([\"'`])")
_BRACKET = re.compile(r"[\[\]{}]")
# A bare value goes on over , ; & and quotes unless they end it; what follows them tells.
_BARE = re.compile(r"(?:[^\s\"'`&;,]|[&;,](?!\s|$|[\w.%-]{1,40}[=:])|[\"'`](?![\s,;:)\]}>&\\]|$))+")
_HEADER = re.compile(r"(?:[A-Za-z][\w-]{0,30}[ \t]{1,4})?\S+(?:(?<=[;,])[ \t]{1,2}\S+)*")
_HEADER_NAMES = ("authorization", "cookie", "cookies")
_LONGEST_ELEMENT = 8192
_FLAG = re.compile(r"(?:\A|[\s\"'=\[(,])--[\w.-]{0,64}\Z")


class SecretText:
    """Replaces secrets in text, in time that grows linearly with it.

    Args:
        names: what follows one of these and ``=``, ``:``, ``=>``, ``:=`` is replaced: a quoted value whole, a list or
            object whole, else up to the next white space or the next ``name=``; so is what follows the name as a
            command line's ``--flag`` or as an XML element, and the whole line of an ``Authorization`` or ``Cookie``.
        patterns: regular expressions; the whole match is replaced or, when it has one, the group ``secret``.
        cards: whether card numbers are replaced too: 13 to 19 digits, in one or in groups, with a right check digit.
        replacement: what stands there instead.

    Raises:
        ConfigError: a pattern that is none, or that would match anywhere.
    """

    def __init__(self, names: SecretNames, patterns: Sequence[str], *, cards: bool, replacement: str) -> None:
        self._names = names
        self._cards = cards
        self._replacement = replacement
        self._hinted = [(_any_of(HINTS[pattern]), _compile(pattern)) for pattern in patterns if pattern in HINTS]
        self._always = [_compile(pattern) for pattern in patterns if pattern not in HINTS]
        hints = [hint for pattern in patterns for hint in HINTS.get(pattern, ())]
        self._hint = _any_of([*names.hints, *hints])
        self._named = re.compile(
            rf"(?P<name>{names.expression or '(?!)'})\d{{0,6}}(?:(?P<xml>>)|[\\\"'`\])]{{0,6}}"
            r"(?:\s{0,4}(?:=>|:=|={1,2}|:)\s{0,4}|(?P<loose>[\s,]\s{0,4})))"
        )

    def redact(self, text: str) -> str:
        """Give the text without its secrets; the same object when there are none."""
        new = text
        if self._cards:
            new = self._without(new, _card_numbers(new))
        for pattern in self._always:
            new = self._without(new, _spans(pattern, new))
        if self.has_hint(new):
            for hint, pattern in self._hinted:
                if hint.search(_small_letters(new)):
                    new = self._without(new, _spans(pattern, new))
            new = self._without(new, self._named_values(new))
        return text if new == text else new

    @property
    def is_hinted(self) -> bool:
        """Whether a text without a hint has no secret: not so when one's own patterns are looked for, or cards."""
        return not (self._always or self._cards)

    def has_hint(self, text: str) -> bool:
        """Tell whether a secret of a known form may be in the text: a cheap look."""
        return self._hint.search(_small_letters(text)) is not None

    def _without(self, text: str, spans: Iterator[tuple[int, int]]) -> str:
        parts: list[str] = []
        done = 0
        for begin, end in spans:
            parts += (text[done:begin], self._replacement)
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _named_values(self, text: str) -> Iterator[tuple[int, int]]:
        small = _small_letters(text)
        at = 0
        while found := self._named.search(small, at):
            at = found.end()
            name = small[max(0, found.start() - 40) : found.end("name")]
            if name not in self._names:
                continue
            if found["loose"] is not None and (
                text.startswith("-", at) or not _FLAG.search(small[max(0, found.start() - 65) : found.start()])
            ):
                continue
            begin, end = _xml_value(text, at) if found["xml"] else _value(text, at, _fold(name))
            if end > begin:
                yield begin, end
                at = end


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{pattern[:80]!r} is no regular expression: {error}") from None
    if compiled.search(""):
        raise ConfigError(f"{pattern[:80]!r} matches the empty text, so it would match anywhere")
    return compiled


def _small_letters(text: str) -> str:
    """Give the text in small letters, each at the place of the letter that it stands for."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    group = "secret" if "secret" in pattern.groupindex else 0
    for found in pattern.finditer(text):
        if found.end(group) > found.start(group):
            yield found.span(group)


def _value(text: str, at: int, name: str) -> tuple[int, int]:
    """Say from where to where a value reaches that begins at ``at``, without its quotes. An unclosed one takes all."""
    if quote := _QUOTE.match(text, at):
        return quote.end(), _closing_quote(text, quote.end(), quote[2], len(quote[1]))
    if text.startswith(("[", "{"), at):
        depth = 0
        for bracket in _BRACKET.finditer(text, at):
            depth += 1 if bracket[0] in "[{" else -1
            if not depth:
                return at, bracket.end()
        return at, len(text)
    bare = (_HEADER if name.endswith(_HEADER_NAMES) else _BARE).match(text, at)
    return at, bare.end() if bare else at


def _closing_quote(text: str, begin: int, quote: str, slashes: int) -> int:
    """Find the end of a quoted value; in JSON within JSON its quotes have backslashes before them, inner ones more."""
    at = begin
    while (at := text.find(quote, at)) >= 0:
        before = 0
        while at - before > begin and text[at - before - 1] == "\\":
            before += 1
        if before % (2 * slashes + 2) == slashes:
            return at - slashes
        at += 1
    return len(text)


def _xml_value(text: str, at: int) -> tuple[int, int]:
    return at, text.find("<", at, at + _LONGEST_ELEMENT)


_CARD = re.compile(r"(?<!\d)(?:\d{13,19}|\d{4}(?:[ -]\d{2,7}){2,4})(?!\d)", re.ASCII)


def _card_numbers(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while found := _CARD.search(text, at):
        begin, end = found.span()
        at = begin + 4
        while end > begin:  # without its last groups, when it is no number with them
            if has_card_number(text[begin:end].replace(" ", "").replace("-", "")):
                yield begin, end
                at = end
                break
            end = max(text.rfind(" ", begin, end), text.rfind("-", begin, end))


def has_card_number(digits: str) -> bool:
    """Tell whether digits are those of a payment card: 13 to 19, of an issuer's range, with a check digit by Luhn."""
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456":
        return False
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0
