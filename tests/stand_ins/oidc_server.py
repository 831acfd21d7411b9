"""A provider of sign-in that speaks OpenID Connect: description, keys, a page to choose an account, and signed tokens.

As strict as a real one: what is not registered, is used twice, comes late or lacks PKCE is refused.
"""

from __future__ import annotations

import base64
import hashlib
import html
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .local_server import LocalServer

CLIENT, SECRET = "crag-explorer", "a secret between the application and its provider"
_CODE_S = 60.0


@dataclass(frozen=True)
class Account:
    """`claims` are what an identity token says beside the subject."""

    subject: str
    claims: Mapping[str, object]


@dataclass(frozen=True)
class _Code:
    account: Account
    redirect_uri: str
    nonce: str
    challenge: str
    scope: tuple[str, ...]
    born: float


class OidcServer(LocalServer):
    """Knows `accounts` by the name on their button, and sends nobody to an address that is not in `redirect_uris`.

    problems     what was refused, in words, in order
    signed_by    another key than the published one, for forged tokens
    nonce        instead of the one that was asked for
    issued_ago   seconds since the sign-in that a token speaks of
    """

    def __init__(self, accounts: Mapping[str, Account]) -> None:
        handlers = {
            ("GET", "/.well-known/openid-configuration"): self._describe,
            ("GET", "/keys"): self._tell_keys,
            ("GET", "/authorize"): self._ask,
            ("GET", "/chosen"): self._choose,
            ("POST", "/token"): self._give_token,
            ("GET", "/logout"): self._log_out,
        }
        super().__init__({route: _handler(answer) for route, answer in handlers.items()})
        self.accounts = dict(accounts)
        self.redirect_uris: list[str] = []
        self.problems: list[str] = []
        self.logouts = 0
        self.key = RSAKey.generate_key(2048, {"kid": "of-today", "use": "sig", "alg": "RS256"})
        self.signed_by: RSAKey | None = None
        self.nonce: str | None = None
        self.issued_ago = 0.0
        self._codes: dict[str, _Code] = {}

    @property
    def metadata_url(self) -> str:
        return f"{self.url}/.well-known/openid-configuration"

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "end_session_endpoint": f"{self.url}/logout",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": ["openid", "email", "profile"],
            }
        )

    async def _tell_keys(self, request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def _ask(self, request: Request) -> Response:
        """The page with an account to choose."""
        asked = dict(request.query_params)
        wrong = [
            *([] if asked.get("client_id") == CLIENT else ["client_id"]),
            *([] if asked.get("redirect_uri") in self.redirect_uris else ["redirect_uri"]),
            *([] if asked.get("response_type") == "code" else ["response_type"]),
            *([] if {"openid", "email"} <= set(asked.get("scope", "").split()) else ["scope"]),
            *([] if asked.get("code_challenge_method") == "S256" else ["code_challenge_method"]),
            *[name for name in ("state", "nonce", "code_challenge") if len(asked.get(name, "")) < 8],
        ]
        if wrong:
            return self._refuse(f"asked with another {', '.join(wrong)}")
        links = "".join(
            f'<p><a href="/chosen?{html.escape(urlencode({**asked, "account": name}))}">{html.escape(name)}</a></p>'
            for name in (*self.accounts, "Nobody")
        )
        return HTMLResponse(f"<!doctype html><title>Provider</title><h1>Choose an account</h1>{links}")

    async def _choose(self, request: Request) -> Response:
        asked = dict(request.query_params)
        if asked.get("redirect_uri") not in self.redirect_uris:
            return self._refuse("chosen with another redirect_uri")
        back: dict[str, str] = {"state": asked["state"]}
        account = self.accounts.get(asked["account"])
        if account is None:
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(24)
            self._codes[back["code"]] = _Code(
                account, asked["redirect_uri"], asked["nonce"], asked["code_challenge"],
                tuple(asked["scope"].split()), time.monotonic(),
            )  # fmt: skip
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", status_code=302)

    async def _give_token(self, request: Request) -> Response:
        given: Mapping[str, str] = request.scope["form"] or {}
        if not _is_client(request.headers.get("authorization", "")):
            return self._refuse("a token for an unknown client", "invalid_client", 401)
        code = self._codes.pop(given.get("code", ""), None)
        if given.get("grant_type") != "authorization_code" or code is None:
            return self._refuse("a token for a code that is unknown or was used", "invalid_grant")
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != code.challenge:
            return self._refuse("a token for another code_verifier", "invalid_grant")
        if given.get("redirect_uri") != code.redirect_uri or time.monotonic() - code.born > _CODE_S:
            return self._refuse("a token for another redirect_uri, or too late", "invalid_grant")
        return JSONResponse(
            {"access_token": secrets.token_urlsafe(24), "token_type": "Bearer", "expires_in": 3600,
             "id_token": self._identity(code)},
            headers={"cache-control": "no-store"},
        )  # fmt: skip

    async def _log_out(self, request: Request) -> Response:
        asked = request.query_params
        if asked.get("client_id") != CLIENT or asked.get("post_logout_redirect_uri") not in self.redirect_uris:
            return self._refuse("a log-out with another client_id or address")
        self.logouts += 1
        return RedirectResponse(asked["post_logout_redirect_uri"], status_code=302)

    def _identity(self, code: _Code) -> str:
        issued = int(time.time() - self.issued_ago)
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": code.account.subject,
            "iat": issued,
            "exp": int(time.time()) + 3600,
            "nonce": code.nonce if self.nonce is None else self.nonce,
            **code.account.claims,
        }
        return jwt.encode({"alg": "RS256", "kid": "of-today"}, claims, self.signed_by or self.key)

    def _refuse(self, why: str, error: str = "invalid_request", status: int = 400) -> Response:
        self.problems.append(why)
        return JSONResponse({"error": error, "error_description": why}, status_code=status)


def _is_client(header: str) -> bool:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return False
    name, _, secret = base64.b64decode(encoded).decode().partition(":")
    return (unquote(name), unquote(secret)) == (CLIENT, SECRET)


def _handler(answer: Any) -> Any:
    """`answer` takes a request, whose form, if it has one, stands in its scope."""

    async def handle(body: Any) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await answer(Request({**scope, "form": body}))
            await response(scope, receive, send)

        return app

    return handle
