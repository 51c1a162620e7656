"""The default patterns of secrets in text, each with its reason and with hints that make the search fast."""

from __future__ import annotations

from typing import NamedTuple

from balog.common.redaction.tokens import START, TOKEN_PATTERN

EMAIL = r"(?<![\w.%+'-])[\w.%+'-]+@(?:[\w-]{1,63}\.){1,10}[^\W\d_]{2,}"


class SecretPattern(NamedTuple):
    """A form of a secret.

    Attributes:
        reason: the secret that it finds.
        pattern: a regular expression; the whole match is the secret, or the group ``secret``. None depends on a digit,
            which ``Redactor.redact_encoded`` uses.
        hints: if the pattern matches a text, one of these matches the text in lower case. A hint begins with a literal,
            its rarest character: all hints together are one search that skips most characters quickly. Tokens have
            none: ``has_token`` finds them.
    """

    reason: str
    pattern: str
    hints: tuple[str, ...]


_DEFAULT = (
    # Authorization values, but not prose about them
    SecretPattern(
        "the value of a Bearer authorization",
        r"\b(?:[Bb]earer|BEARER)\s{1,4}(?!(?i:tokens?|auth\w{0,20}|scheme|header|realm)\b)(?P<secret>[\w.~+/=-]{6,})",
        ("bearer",),
    ),
    SecretPattern(
        "the value of a Basic authorization",
        r"\b(?:[Bb]asic|BASIC)\s{1,4}(?=\S[a-z]*[A-Z0-9+/=])(?P<secret>[A-Za-z0-9+/]{6,}={0,2})",
        ("basic",),
    ),
    # JSON web tokens, signed or encrypted; only at the start of a word, which keeps the search linear
    SecretPattern(
        "a JSON web token",
        r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}",
        ("j(?<=eyj)",),
    ),
    # AWS: key ids, and secret keys in prose
    SecretPattern(
        "an AWS access key id",
        START + r"(?:AKIA|ASIA|ABIA|ACCA|A\dT[A-Z0-9])[A-Z0-9]{16}(?![A-Z0-9])",
        ("k(?<=ak)ia", "s(?<=as)ia", "b(?<=ab)ia", "c(?<=ac)ca", r"t(?<=a\dt)"),
    ),
    SecretPattern(
        "an AWS secret key",
        r"[Ss]ecret(?:[ _-]?[Aa]ccess)?[ _-]?[Kk]ey(?:\s{1,4}is)?\s{1,4}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        ("c(?<=sec)ret",),
    ),
    # URLs with credentials: user:password@, also with a slash in the password (a port has none), or one long word@
    SecretPattern(
        "credentials in a URL",
        r":(?:\\?/){2}(?P<secret>[^\s/?#@:\"'<>]*:[^\s/\"'<>]*"
        r"|[^\s/?#@:\"'<>]*:(?!\d{1,5}/)[^\s@\"'<>]{1,256}"
        r"|[^\s/?#@:\"'<>]{20,})@",
        ("@",),
    ),
    # signatures in URLs; connection strings of Azure; hooks of Slack
    SecretPattern(
        "a secret parameter of a URL",
        r"[?&;](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential)|key)"
        r"=(?P<secret>[^\s&#\"'<>]+)",
        ("=(?<=[gely]=)(?:(?<=sig=)|(?<=signature=)|(?<=credential=)|(?<=key=))",),
    ),
    # the user and the password of curl
    SecretPattern(
        "the user and the password of curl",
        r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[\s=]{0,3}"
        r"(?P<secret>[\"'][^\"'\n]{1,200}[\"']|[^\s\"':]{1,100}:[^\s\"']{1,200})",
        ("u(?<=cu)rl",),
    ),
    SecretPattern("an Azure AD client secret", r"(?<![\w~.])[\w~.]{3}\dQ~[\w~.-]{31,}", (r"q(?<=\dq)~",)),
    SecretPattern(
        "the key of an Azure connection string", r"AccountKey=(?P<secret>[^;\s\"'&]+)", ("c(?<=ac)countkey=",)
    ),
    SecretPattern(
        "a Slack webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]+)",
        (r"k(?<=hook)s\.slack",),
    ),
    SecretPattern("a Discord webhook", r"discord(?:app)?\.com/api/webhooks/(?P<secret>[\w/-]+)", (r"k(?<=webhook)s/",)),
    SecretPattern(
        "a Microsoft Teams webhook",
        r"webhook\.office\.com/webhook\w{0,9}/(?P<secret>[^\s\"'<>]+)",
        (r"k(?<=webhook)\.office",),
    ),
    # SQL: CREATE USER … PASSWORD '…', IDENTIFIED BY '…', COPY … SECRET_ACCESS_KEY '…'
    SecretPattern(
        "a password in SQL",
        r"(?i:\bpassword|\bidentified\s{1,4}(?:with\s{1,4}[\w'\"`]{1,40}\s{1,4})?(?:by|as)(?:\s{1,4}password)?"
        r"|\bsecret_access_key|\baccess_key_id|\bmaster_symmetric_key)(?:\s{1,4}|\s{0,4}\(\s{0,4})"
        r"'(?P<secret>(?:[^'\n]|''){1,400})'",
        (r"w(?<=passw)ord[\s(]{1,9}'", "f(?<=identif)ied", r"k(?<=_k)ey(?:_id)?[\s(]{1,9}'"),
    ),
    # The same in the other quotes of SQL: PostgreSQL's E'…' and $$…$$, and Oracle's "…"
    SecretPattern(
        "a password in SQL",
        r"(?i:\bpassword\s{1,4})(?:[eE]'|\$[A-Za-z_]{0,20}\$)(?P<secret>(?:[^'$\n\\]|\\.){1,400})",
        (r"w(?<=passw)ord\s{1,4}(?:e'|\$)",),
    ),
    SecretPattern(
        "a password in SQL",
        r"(?i:\bset\s{1,4}password)\b[^\n='\"]{0,80}=\s{0,4}(?:[A-Za-z]{1,20}\(\s{0,4})?'(?P<secret>(?:[^'\n]|''){1,400})'",
        (r"w(?<=passw)ord[^\n='\"]{0,80}=",),
    ),
    SecretPattern(
        "a password in SQL",
        r"(?i:\bidentified\s{1,4}by\s{1,4})\"(?P<secret>[^\"\n]{1,400})\"",
        ("f(?<=identif)ied",),
    ),
    SecretPattern(
        "the user and the password of Oracle's JDBC driver",
        r"(?i:jdbc:oracle:\w{1,10}:)(?P<secret>[^\s/@]{1,100}/[^\s@]{1,200})@",
        ("j(?=dbc:oracle)",),
    ),
    SecretPattern(
        "the parameters of a statement with a secret's column, in an error of SQLAlchemy",
        r"\[SQL:(?=[^\[]{0,2000}(?i:password|passwd|secret|token|api_key))[^\[]{0,4000}\[parameters:\s"
        r"(?P<secret>[^\n]{1,4000})\]",
        ("m(?<=param)eters:",),
    ),
    # options that are passwords in some commands only
    SecretPattern(
        "the password of a command",
        r"\b(?:sshpass|docker\s{1,4}login|podman\s{1,4}login)\b[^\n]{0,200}?\s-p[\s=]{0,3}(?P<secret>[^\s\"']{1,200})",
        ("h(?<=ssh)pass", "k(?<=dock)er", "m(?<=podm)an"),
    ),
    SecretPattern(
        "the password of a command",
        r"\bmysql\w{0,10}\b[^\n]{0,200}?\s-p(?P<secret>[^\s\"'=-][^\s\"']{1,200})",
        ("q(?<=mysq)l",),
    ),
    # private keys, also when the text ends before they do
    SecretPattern(
        "a private key",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?P<secret>(?s:.*?)(?=-----END [A-Z ]{0,40}PRIVATE KEY)|(?s:.*))",
        ("-----begin",),
    ),
    # tokens with a vendor's prefix or mark
    SecretPattern("a token", TOKEN_PATTERN, ()),
)

SECRET_PATTERNS: dict[str, SecretPattern] = {pattern.pattern: pattern for pattern in _DEFAULT}
"""The default patterns by their regular expressions."""
