"""Documented forms of vendors' tokens: a fixed prefix or mark, then letters and digits of a known length."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Token(NamedTuple):
    """The form of one kind of token.

    Attributes:
        name: the vendor and the kind of the token.
        pattern: a regular expression without groups, without an alternative outside of parentheses, and without
            single digits. One class of characters follows a fixed mark, so that a search takes linear time. Each
            token has 16 of ``A-Z a-z 0-9 _ -`` in a row.
    """

    name: str
    pattern: str


_HEX = "[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"

TOKENS: tuple[Token, ...] = (
    Token("GitHub token", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    Token("GitHub fine-grained token", r"github_pat_\w{20,}"),
    Token("GitLab token", r"gl(?:pat|ptt|dt|ft|rt|rtr|cbt|imt|agent|oas|soat|ffct|wt)-[\w-]{16,}(?:\.[\w-]{2,}){0,2}"),
    Token("GitLab runner registration token", r"GR\d{7}[\w-]{20,}"),
    Token("Slack token", r"xox[a-z](?:\.xox[a-z])?-[\w-]{11,}"),
    Token("Slack app token", r"xapp-[\w-]{20,}"),
    Token("Stripe key", r"[srp]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    Token("Stripe webhook secret", r"whsec_[A-Za-z0-9]{10}[A-Za-z0-9+/=]{10,}"),
    Token("OpenAI or Anthropic key", r"sk-[\w-]{20,}"),
    Token("Google API key", r"AIza[\w-]{35}"),
    Token("Google OAuth token", r"ya\d\d\.[\w-]{20,}"),
    Token("Google OAuth refresh token", r"\d//\d[\w-]{28,}"),
    Token("Google OAuth client secret", r"GOCSPX-[\w-]{20,}"),
    Token("npm token", r"npm_[A-Za-z0-9]{36}"),
    Token("PyPI token", r"pypi-[\w-]{50,}"),
    Token("RubyGems key", rf"rubygems_{_HEX}{{48}}"),
    Token("Clojars token", r"CLOJARS_[A-Za-z0-9]{60}"),
    Token("Hugging Face token", r"hf_[A-Za-z0-9]{30,}"),
    Token("Hugging Face organisation token", r"api_org_[A-Za-z0-9]{34}"),
    Token("DigitalOcean token", rf"do[opr]_v\d_{_HEX}{{64}}"),
    Token("SendGrid key", r"SG\.[\w-]{20,}\.[\w-]{20,}"),
    Token("Brevo key", rf"xkeysib-{_HEX}{{64}}-[A-Za-z0-9]{{16}}"),
    Token("Shopify token", rf"shp[a-z]{{2}}_{_HEX}{{32}}"),
    Token("HashiCorp Vault token", r"hv[bsr]\.[\w-]{24,}"),
    Token("HashiCorp Vault token before 1.10", r"s\.[A-Za-z0-9]{24}(?!\w|\.\w)"),
    Token("Terraform Cloud token", r"[A-Za-z0-9]{14}\.atlasv\d\.[\w-]{40,}"),
    Token("Databricks token", rf"dapi{_HEX}{{32}}(?:-\d)?"),
    Token("Telegram bot token", r"(?:bot)?\d{5,16}:AA[\w-]{32,}"),
    Token("Discord bot token", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    Token("New Relic key", r"NR(?:AK|II|IQ|RA|AA|SP|BR)-[\w-]{20,}"),
    Token("New Relic browser key", rf"NRJS-{_HEX}{{19}}"),
    Token("New Relic licence key", r"[0-9a-zA-Z]{36}NRAL"),
    Token("Mailgun key", rf"(?:pub)?key-{_HEX}{{32}}(?![0-9a-zA-Z])"),
    Token("Mailgun signing key", rf"{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}(?![\w-])"),
    Token("Mailchimp key", rf"{_HEX}{{32}}-us\d{{1,2}}(?!\w)"),
    Token("HubSpot token", rf"pat-[a-z]{{2}}\d-{_UUID}"),
    Token("Atlassian token", r"AT(?:ATT|CTT|BB)[\w-]{16}[\w=+/-]*"),
    Token("Grafana token", r"gl(?:sa|c)_\w{12}[\w+/=]{20,}"),
    Token("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    Token(
        "Authress key",
        r"(?:(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.)?acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}",
    ),
    Token("Dropbox token", r"sl\.(?:u\.)?[\w=-]{100,}"),
    Token("Dropbox token", r"[A-Za-z0-9]{11}A{10}[\w=-]{43}(?![\w=-])"),
    Token("Facebook app token", r"\d{15,16}(?:\||%\d[cC])[\w-]{27,40}(?![\w-])"),
    Token("Grafana key", r"eyJrIjoi[A-Za-z0-9]{60,}={0,3}"),
    Token("JSON web token in base64", r"ZXlK[\w+/-]{60,}={0,2}"),
    Token("Notion token", r"ntn_\d{11}[A-Za-z0-9]{35}"),
    Token("Airtable token", r"pat[A-Za-z0-9]{14}\.[A-Za-z0-9]{20,}"),
    Token("PlanetScale token", r"pscale_(?:tkn|oauth|pw)_[\w-]{6}[\w.=-]{26,}"),
    Token("Postman key", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    Token("Prefect key", r"pn[ubt]_[A-Za-z0-9]{36}"),
    Token("Pulumi token", rf"pul-{_HEX}{{40}}"),
    Token("ReadMe key", r"rdme_[a-z0-9]{70}"),
    Token("Sentry token", r"sntry[su]_[\w-]{16}[\w+/=-]{20,}"),
    Token("Shippo token", rf"shippo_(?:live|test)_{_HEX}{{40}}"),
    Token("Square token", r"sq0?[a-z0-9]{2,4}-[\w-]{22,}"),
    Token("Square token", r"EAAA[\w-]{22,60}(?![\w-])"),
    Token("Twitter bearer token", r"A{22}(?=[A-Z%]{0,80}[a-z0-9])[A-Za-z0-9%]{80,100}(?![\w%+/=])"),
    Token("Typeform token", r"tfp_[\w-]{12}[\w.=-]{28,}"),
    Token("Twilio key", rf"SK{_HEX}{{32}}(?![0-9a-zA-Z])"),
    Token("Dynatrace token", r"dt\dc\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    Token("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w-]{40,}"),
    Token("Duffel token", r"duffel_(?:test|live)_[\w-]{43}"),
    Token("EasyPost key", r"EZ[AT]K[A-Za-z0-9]{54}"),
    Token("Flutterwave key", r"FLW(?:SECK|PUBK)(?:_TEST)?-[\w-]{12,}"),
    Token("Fly.io token", r"fm\d[ar]?_[\w-]{12}[\w+/=,-]{28,}"),
    Token("Fly.io token", r"fo\d_[\w-]{43}"),
    Token("Frame.io token", r"fio-u-[\w-]{40,}"),
    Token("Heroku key", r"HRKU-[\w-]{36,}"),
    Token("Infracost key", r"ico-[A-Za-z0-9]{32}"),
    Token("JFrog key", r"AKCp[A-Za-z0-9]{69}"),
    Token("JFrog key", r"cmVmd[A-Za-z0-9]{59}"),
    Token("Octopus Deploy key", r"API-[A-Z0-9]{26,}"),
    Token("OpenShift token", r"sha\d{3}~[\w-]{43}"),
    Token("Perplexity key", r"pplx-[A-Za-z0-9]{48}"),
    Token("1Password key", r"A\d-[A-Z0-9]{6}-[A-Z0-9-]{23,28}"),
    Token("1Password key", r"ops_eyJ[\w-]{16}[\w+/=-]{80,}"),
    Token("Age secret key", r"AGE-SECRET-KEY-\d[A-Z0-9]{58}"),
    Token("Alibaba Cloud key", r"LTAI[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    Token("AWS Bedrock key", r"ABSK[A-Za-z0-9]{12}[A-Za-z0-9+/=]{90,}"),
    Token("AWS Bedrock key", r"bedrock-api-key-[\w+/=-]{20,}"),
    Token("Adobe client secret", rf"p\de-{_HEX}{{32}}"),
    Token("Cloudflare origin CA key", rf"v\d\.\d-{_HEX}{{24}}-{_HEX}{{146}}"),
    Token("Facebook token", r"EAA[A-Z][A-Za-z0-9]{60,}"),
    Token("Harness key", r"[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    Token("MaxMind licence key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    Token("Scalingo token", r"tk-us-[\w-]{48}"),
    Token("SettleMint token", r"sm_[aps]at_[A-Za-z0-9]{16}"),
    Token("Sourcegraph token", rf"sgp_(?:(?:{_HEX}{{16}}|local)_)?{_HEX}{{40}}"),
    Token("SonarQube token", rf"sq[upa]_{_HEX}{{40}}"),
    Token("Yandex Cloud key", r"AQVN[\w-]{35,}"),
    Token("Yandex Cloud key", r"t\d\.[\w-]{20,}={0,2}\.[\w-]{86}"),
    Token("Yandex Cloud key", r"YC[\w-]{38}(?![\w-])"),
    Token("Plaid token", rf"access-(?:sandbox|development|production)-{_UUID}"),
    Token("Lob key", rf"(?:live|test)_(?:pub_)?{_HEX}{{31,35}}(?!\w)"),
    Token("Mapbox token", r"[ps]k\.eyJ[\w-]{40,}\.[\w-]{22}"),
    Token("42 client secret", rf"s-s\dt\d(?:ud|af)-{_HEX}{{64}}"),
    Token("Defined Networking token", r"dnkey-[\w-]{26}-[\w-]{52}"),
    Token("ClickHouse Cloud key", r"\db\dd[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
)
"""The known tokens. Tokens without a mark (plain hexadecimal text) are found by the names of their keys."""

# The start of a word; escapes (\n, \x27, \u0022, %22) and colours of a terminal count as white space.
START = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})"
    r"|(?<=\x1b\[[0-9]m)|(?<=\x1b\[[0-9]{2}m))"
)


_FIRST = re.compile(r"(?:\\.|[^\\(\[.])(?![?*+{])")


def by_first(expressions: Iterable[str]) -> str:
    """Return one expression for several that tries each first character once; for none, one that never matches."""
    by_first: dict[str, list[str]] = {}
    for expression in expressions:
        first = match[0] if (match := _FIRST.match(expression)) else ""
        by_first.setdefault(first, []).append(expression[len(first) :])
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in by_first.items()) or "(?!)"


TOKEN_PATTERN = f"{START}(?a:{by_first(token.pattern for token in TOKENS)})"

_PREFIX = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-](?![?*+{])|\\\.)")
_with_prefix = [token.pattern for token in TOKENS if _PREFIX.match(token.pattern)]
_PREFIXES = frozenset(pattern[0] + pattern[1:].lstrip("\\")[0] for pattern in _with_prefix)
_match = re.compile(by_first(_with_prefix), re.ASCII).match
_match_other = re.compile(
    by_first(token.pattern for token in TOKENS if not _PREFIX.match(token.pattern)), re.ASCII
).match
_STARTS = re.compile(START + "[A-Za-z0-9]")
_LONG_WORD = b"x" * 16
_IN_WORDS = bytes(ord("x") if chr(byte) in "_-" or (chr(byte).isalnum() and byte < 128) else 0 for byte in range(256))
_LONGEST_BEGIN = 28  # characters of a token before its first long word, up to . : or ~


def _is_token(text: str, at: int) -> bool:
    return (text[at : at + 2] in _PREFIXES and _match(text, at) is not None) or _match_other(text, at) is not None


def has_token(text: str) -> bool:
    """Return whether a text has a known token. Only starts of long words and of their parts are examined."""
    words = text.encode("ascii", "replace").translate(_IN_WORDS)
    begin = 0
    while (begin := words.find(_LONG_WORD, begin)) >= 0:
        end = words.find(b"\0", begin)
        end = len(words) if end < 0 else end
        before = text[begin - 1 : begin]
        if _is_token(text, begin) or (before == "\\" and _is_token(text, begin + 1)):
            return True
        first = max(0, begin - _LONGEST_BEGIN) if before and before in ".:~/|%" else begin + 1
        if any(_is_token(text, start.start()) for start in _STARTS.finditer(text, first, end)):
            return True
        begin = end
    return False
