"""Who asks, and what they may do: one question, `may`, in one place; and how a token or a session becomes an actor.

Promises: only SHA-256 sums of secrets are stored; a sign-in code works once and not after it expires.
"""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from aliquot.core import errors
from aliquot.service import ports, records

ADMINISTRATOR = "admin"
LINK_LIFE = timedelta(minutes=15)
# A browser stays signed in for a working month; the server can be asked for a new link at any time.
SESSION_LIFE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts (`name`) and from where (`origin`: an address, `cli`, `loop`)."""

    name: str
    origin: str = ""
    is_authenticated: bool = True


LOOP = Actor("aliquot", "loop")
"""The server itself."""


def may(actor: Actor, verb: str, noun: str, scope: records.Scope) -> bool:
    """Whether the actor may do this there. One rule today: who is authenticated may do all in the one tenant."""
    return actor.is_authenticated and bool(verb) and bool(noun) and scope.tenant == records.DEFAULT_TENANT


def check(actor: Actor, verb: str, noun: str, *, scope: records.Scope | None = None) -> None:
    """Raises Forbidden where `may` says no."""
    if not may(actor, verb, noun, scope or records.Scope()):
        raise errors.Forbidden(f"{actor.name} may not {verb} a {noun}")


class Access:
    """Tokens, sign-in links and browser sessions."""

    def __init__(self, store: ports.Store, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def ensure_token(self, secret: str) -> None:
        """Make this the administrator's one token: others are forgotten."""
        row = self._credential(secret, "token", life=None)

        def work(tx: ports.Transaction) -> None:
            for other in tx.credentials.find(kind="token"):
                if other.id != row.id:
                    tx.credentials.delete(other.id)
            if tx.credentials.get(row.id) is None:
                tx.credentials.put(row)

        await self._store.write(work)

    async def authenticate_token(self, secret: str, *, origin: str = "") -> Actor:
        """The actor of a bearer token. Raises Unauthenticated."""
        return await self._authenticate(secret, "token", origin=origin)

    async def authenticate_session(self, cookie: str, *, origin: str = "") -> Actor:
        """The actor of a browser session. Raises Unauthenticated."""
        return await self._authenticate(cookie, "session", origin=origin)

    async def open_link(self, actor: Actor) -> tuple[str, datetime]:
        """A code that signs one browser in, once, and when it expires."""
        check(actor, "create", "sign-in link")
        code = self._ids.secret()
        row = replace(self._credential(code, "link", life=LINK_LIFE), actor=actor.name)
        await self._store.write(lambda tx: tx.credentials.put(row))
        return code, self._clock.now() + LINK_LIFE

    async def redeem_link(self, code: str) -> str:
        """The secret of a new session for a code that was not used yet. Raises Unauthenticated."""
        secret = self._ids.secret()
        now = self._clock.now()
        session = self._credential(secret, "session", life=SESSION_LIFE)

        def work(tx: ports.Transaction) -> None:
            link = tx.credentials.get(digest(code))
            if link is None or link.kind != "link" or _is_over(link, now):
                raise errors.Unauthenticated("this sign-in link was used already or has expired; ask for a new one")
            tx.credentials.delete(link.id)
            _forget_old(tx, now)
            tx.credentials.put(replace(session, actor=link.actor))

        await self._store.write(work)
        return secret

    async def open_session(self, token: str) -> str:
        """The secret of a new session for a token. Raises Unauthenticated."""
        secret = self._ids.secret()
        now = self._clock.now()
        session = self._credential(secret, "session", life=SESSION_LIFE)

        def work(tx: ports.Transaction) -> None:
            known = tx.credentials.get(digest(token))
            if known is None or known.kind != "token" or _is_over(known, now):
                raise errors.Unauthenticated("token: this is not the token of this server", field="token")
            _forget_old(tx, now)
            tx.credentials.put(replace(session, actor=known.actor))

        await self._store.write(work)
        return secret

    async def sign_out(self, cookie: str) -> None:
        """End a session; one that is not there is as good as ended."""
        key = digest(cookie)

        def work(tx: ports.Transaction) -> None:
            row = tx.credentials.get(key)
            if row is not None and row.kind == "session":
                tx.credentials.delete(key)

        await self._store.write(work)

    async def _authenticate(self, secret: str, kind: str, *, origin: str) -> Actor:
        row = await self._store.read(lambda tx: tx.credentials.get(digest(secret)))
        if row is None or row.kind != kind or _is_over(row, self._clock.now()):
            raise errors.Unauthenticated(f"this {kind} is not valid")
        return Actor(row.actor, origin)

    def _credential(self, secret: str, kind: str, *, life: timedelta | None) -> records.CredentialRow:
        now = self._clock.now()
        expires = None if life is None else now + life
        return records.CredentialRow(id=digest(secret), kind=kind, actor=ADMINISTRATOR, created=now, expires=expires)


def digest(secret: str) -> str:
    """What is stored of a secret. Secrets have 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _forget_old(tx: ports.Transaction, now: datetime) -> None:
    for old in tx.credentials.find(ports.Where("expires", "le", now)):
        tx.credentials.delete(old.id)


def _is_over(row: records.CredentialRow, now: datetime) -> bool:
    return row.expires is not None and row.expires <= now
