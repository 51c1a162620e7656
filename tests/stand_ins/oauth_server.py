"""An OAuth server of Authlib, behind werkzeug, with an API whose requests need one of its tokens."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector
from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, jsonify, request
from werkzeug.serving import make_server

__all__ = ["OAuthServer"]

GRANTS = {"client_credentials", "password", "refresh_token", "authorization_code"}


class OAuthClient(ClientMixin):
    """The one application that the server knows."""

    client_id, client_secret = "tap", "application-s3cret&+ä"

    def __init__(self, method: str) -> None:
        self.method = method

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return re.fullmatch(r"http://127\.0\.0\.1:\d+/", redirect_uri) is not None

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.client_secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in GRANTS


class IssuedToken(TokenMixin):
    def __init__(self, token: dict[str, Any], client: OAuthClient, user: str | None) -> None:
        self.fields, self.client, self.user = token, client, user
        self.issued_at = time.time()
        self.is_used = self.is_gone = False

    def check_client(self, client: OAuthClient) -> bool:
        return client.get_client_id() == self.client.get_client_id()

    def get_scope(self) -> str:
        return str(self.fields.get("scope", ""))

    def get_expires_in(self) -> int:
        return int(self.fields.get("expires_in", 0))

    def is_expired(self) -> bool:
        return time.time() > self.issued_at + self.get_expires_in()

    def is_revoked(self) -> bool:
        return self.is_gone

    def get_user(self) -> str | None:
        return self.user

    def get_client(self) -> OAuthClient:
        return self.client


class _Code:
    def __init__(self, code: str, given: Any) -> None:
        self.code, self.user = code, given.user
        self.redirect_uri, self.scope = given.payload.redirect_uri, given.payload.scope or ""
        self.code_challenge = given.payload.data.get("code_challenge")
        self.code_challenge_method = given.payload.data.get("code_challenge_method")

    def get_redirect_uri(self) -> str:
        return str(self.redirect_uri)

    def get_scope(self) -> str:
        return str(self.scope)


class OAuthServer:
    """The server on a free port of 127.0.0.1, with these grants.

    Args:
        rotates: a refresh token is good for one use.
        lifetime: of an access token, in seconds.
        method: how the application signs in at the token endpoint.

    Attributes:
        tokens: all that were issued.
        requests: the grant types that the token endpoint was asked for.
        delay: seconds that the token endpoint waits before it answers.
    """

    def __init__(
        self,
        *,
        rotates: bool = True,
        lifetime: int = 3600,
        method: str = "client_secret_post",
    ) -> None:
        self.rotates = rotates
        self.tokens: list[IssuedToken] = []
        self.requests: list[str] = []
        self.codes: dict[str, _Code] = {}
        self.delay = 0.0
        self.client = OAuthClient(method)
        app = Flask("oauth")
        app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
        app.config["OAUTH2_TOKEN_EXPIRES_IN"] = dict.fromkeys(GRANTS, lifetime)
        self._app = app
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._register()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> OAuthServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def revoke(self) -> None:
        """Revoke every token."""
        for token in self.tokens:
            token.is_gone = True

    def expire(self) -> None:
        """Let every access token expire; refresh tokens stay good."""
        for token in self.tokens:
            token.issued_at = 0

    def _register(self) -> None:
        here = self

        def save(token: dict[str, Any], given: Any) -> None:
            here.tokens.append(IssuedToken(token, given.client, given.user))

        known = {self.client.client_id: self.client}
        server = AuthorizationServer(self._app, query_client=known.get, save_token=save)
        methods = ["client_secret_basic", "client_secret_post", "none"]

        class Password(grants.ResourceOwnerPasswordCredentialsGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = methods

            def authenticate_user(self, username: str, password: str) -> str | None:
                return username if (username, password) == ("ada", "user-s3cret") else None

        class Application(grants.ClientCredentialsGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = methods

        class Refresh(grants.RefreshTokenGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = methods
            INCLUDE_NEW_REFRESH_TOKEN = here.rotates

            def authenticate_refresh_token(self, refresh_token: str) -> IssuedToken | None:
                found = [token for token in here.tokens if token.fields.get("refresh_token") == refresh_token]
                return next((token for token in found if not token.is_gone and not token.is_used), None)

            def authenticate_user(self, refresh_token: IssuedToken) -> str | None:
                return refresh_token.user

            def revoke_old_credential(self, refresh_token: IssuedToken) -> None:
                refresh_token.is_used = here.rotates

        class AuthorizationCodes(grants.AuthorizationCodeGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = methods

            def save_authorization_code(self, code: str, given: Any) -> None:
                here.codes[code] = _Code(code, given)

            def query_authorization_code(self, code: str, client: OAuthClient) -> _Code | None:
                return here.codes.get(code)

            def delete_authorization_code(self, authorization_code: _Code) -> None:
                del here.codes[authorization_code.code]

            def authenticate_user(self, authorization_code: _Code) -> str:
                return str(authorization_code.user)

        for grant in (Password, Application, Refresh):
            server.register_grant(grant)
        server.register_grant(AuthorizationCodes, [CodeChallenge(required=True)])
        self._route(server)

    def _route(self, server: AuthorizationServer) -> None:
        app, here = self._app, self

        class Validator(BearerTokenValidator):
            def authenticate_token(self, token_string: str) -> IssuedToken | None:
                return next((token for token in here.tokens if token.fields["access_token"] == token_string), None)

        guarded = ResourceProtector()
        guarded.register_token_validator(Validator())

        @app.post("/token")
        def token() -> Any:
            self.requests.append(request.form["grant_type"])
            time.sleep(self.delay)
            return server.create_token_response()

        @app.get("/authorize")
        def authorize() -> Any:
            user = None if "deny" in request.args else "ada"
            grant = server.get_consent_grant(end_user=user)
            return server.create_authorization_response(grant=grant, grant_user=user)

        @app.get("/api/me")
        @guarded()
        def me() -> Any:
            return jsonify(user=getattr(guarded.acquire_token(), "user", None))
