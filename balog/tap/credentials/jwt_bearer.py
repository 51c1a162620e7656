"""OAuth JWT bearer: an application signs its requests for tokens with a private key."""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import msgspec

from balog.errors import ConfigError, MissingExtraError
from balog.tap.credentials.credential import Granted
from balog.tap.credentials.grant import TokenGrant

_MAX_FILE = 1 << 20


class JwtBearer(TokenGrant):
    """Fetches access tokens with a signed JSON Web Token (RFC 7523, 2.1; RS256). Needs the extra ``jwt``.

    Args:
        url: the token endpoint.
        issuer: the application, or its account.
        private_key: an RSA key in PEM.
        subject: the user to act for; "" for the issuer.
        audience: who the token is for; "" for the token endpoint.
        key_id: the key's id at the server, if it wants one.
        passphrase: the passphrase of the key.
        lifetime: seconds for which the signed token is valid; many servers accept at most some minutes.
        claims: further claims. ``scope`` is also one, as Google has it.
        options: those of ``TokenGrant``.

    Raises:
        ConfigError: the key is not an RSA key in PEM, or the passphrase is wrong.
        MissingExtraError: the extra is not installed.
    """

    name = "jwt_bearer"
    advice = "it rejected the signed token; check the key, the issuer, the subject and the audience"

    def __init__(
        self,
        url: str,
        issuer: str,
        private_key: str,
        *,
        subject: str = "",
        audience: str = "",
        key_id: str = "",
        passphrase: str = "",
        lifetime: float = 300,
        claims: Mapping[str, Any] | None = None,
        client_id: str = "",
        client_secret: str = "",
        scope: str = "",
        **options: Any,
    ) -> None:
        super().__init__(url, client_id, client_secret, scope=scope, **options)
        self._sign = _signer(private_key, passphrase)
        self._lifetime = lifetime
        self._header = {"alg": "RS256", "typ": "JWT", **({"kid": key_id} if key_id else {})}
        self._claims = {"iss": issuer, "sub": subject or issuer, "aud": audience or url, **(claims or {})}
        if scope:
            self._claims["scope"] = scope

    @classmethod
    def from_service_account(cls, path: str | os.PathLike[str], *, scope: str, subject: str = "") -> JwtBearer:
        """Make a grant from the JSON file of a Google service account.

        Raises:
            ConfigError: the file cannot be read, or is not one.
        """
        try:
            with open(path, "rb") as file:
                found = msgspec.json.decode(file.read(_MAX_FILE), type=_ServiceAccount)
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", os.fspath(path)) from None
        except msgspec.DecodeError:
            raise ConfigError("is not the JSON file of a service account's key", os.fspath(path)) from None
        return cls(
            found.token_uri,
            found.client_email,
            found.private_key,
            subject=subject,
            key_id=found.private_key_id,
            scope=scope,
        )

    def __call__(self) -> Granted | str:
        """See ``TokenGrant``."""
        fields = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": self._assertion()}
        return self._token(fields).access

    def _assertion(self) -> str:
        now = int(time.time())
        claims = {**self._claims, "iat": now, "exp": now + int(self._lifetime), "jti": str(uuid4())}
        signed = f"{_encoded(msgspec.json.encode(self._header))}.{_encoded(msgspec.json.encode(claims))}"
        return f"{signed}.{_encoded(self._sign(signed.encode()))}"


class _ServiceAccount(msgspec.Struct):
    client_email: str
    private_key: str
    token_uri: str
    private_key_id: str = ""


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _signer(private_key: str, passphrase: str) -> Callable[[bytes], bytes]:
    """Return a function that signs with RS256 (RFC 7518, 3.3)."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise MissingExtraError("signing tokens with RS256", "jwt") from None
    try:
        key = load_pem_private_key(private_key.encode(), passphrase.encode() if passphrase else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # its text could contain parts of the key
        advice = "or its passphrase is wrong" if passphrase else "or needs a passphrase"
        raise ConfigError(f"is not a private key in PEM, {advice}", path="private_key") from None
    if not isinstance(key, RSAPrivateKey):
        raise ConfigError("is not an RSA key, which RS256 needs", path="private_key")
    return lambda data: key.sign(data, PKCS1v15(), SHA256())
