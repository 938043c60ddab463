"""Every error that a user can meet, as one tree.

Each class has a stable `code`, which programs may rely on; the message is for people and may change. How an error
becomes an HTTP answer is `aliquot.api.problems`' business, and how it becomes text `aliquot.cli.render`'s.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar


class AliquotError(Exception):
    """The root of the tree.

    `field` names the input that is at fault, as the user wrote it (`gpu`, `pools.default`); `valid` lists what would
    have been accepted; `details` carries numbers for programs.
    """

    code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        valid: Sequence[str] = (),
        details: Mapping[str, object] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.valid = tuple(valid)
        self.details = dict(details or {})
        self.stable_code = code or self.code


class InvalidInput(AliquotError):
    """The input is malformed, whatever the world looks like. HTTP 422, exit code 2."""

    code = "invalid"


class CannotEverStart(InvalidInput):
    """Nothing that is present could ever start this: larger than the machine, the pool or a limit. HTTP 422."""

    code = "cannot-ever-start"


class NotFound(AliquotError):
    """It does not exist, or the actor may not see it: the two answer alike. HTTP 404."""

    code = "not-found"


class Conflict(AliquotError):
    """The thing is there, but not in a state (or not with a name) that allows this. HTTP 409."""

    code = "conflict"


class KeyReused(Conflict):
    """An idempotency key came again with another body. HTTP 409."""

    code = "idempotency-key-reused"


class Unauthenticated(AliquotError):
    """No valid token or session. HTTP 401."""

    code = "unauthenticated"


class Forbidden(AliquotError):
    """The actor is known but may not do this. HTTP 403."""

    code = "forbidden"


class TooLarge(AliquotError):
    """The body is larger than the server reads. HTTP 413."""

    code = "too-large"


class Unavailable(AliquotError):
    """The server cannot do this now; trying again after `retry_after_seconds` may work. HTTP 503."""

    code = "unavailable"

    def __init__(self, message: str, *, retry_after_seconds: int = 1, code: str | None = None) -> None:
        super().__init__(message, code=code, details={"retryAfterSeconds": retry_after_seconds})
        self.retry_after_seconds = retry_after_seconds
