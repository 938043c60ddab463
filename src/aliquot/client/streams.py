"""Follows a stream of server-sent events as an iterator, over connections that break and servers that start again.

Promises: every event once, in order, as long as the server still has them; it ends when the server says the end, and
raises Unavailable when it could not come back for a while.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import httpx2

from aliquot.client import transport
from aliquot.core import errors
from aliquot.wire import base

Model = TypeVar("Model", bound=base.Shape)

# The server says that it lives every 15 s (FastAPI's interval), so three times nothing is a dead connection.
SILENCE_SECONDS = 45.0
MOST_FAILURES = 12
MOST_SECONDS_BETWEEN = 5.0


@dataclass(slots=True)
class _Progress:
    """How far a stream was followed."""

    last: str | None
    kind: str = "message"
    has_begun: bool = False
    is_complete: bool = False
    failures: int = 0


def follow(
    sender: transport.Transport,
    call: transport.Call,
    model: type[Model],
    *,
    last: str | None = None,
    kind: str = "message",
) -> Iterator[Model]:
    """The events of a stream that are of this kind, from after `last` on."""
    progress = _Progress(last, kind)
    while not progress.is_complete:
        fault = errors.Unavailable(f"{sender.url} ends the stream again and again", code="connection-broken")
        try:
            yield from _until_broken(sender, call, model, progress=progress)
        except errors.Unavailable as error:
            if not progress.has_begun:
                raise
            fault = error
        progress.failures += 1
        if progress.failures > MOST_FAILURES:
            raise fault
        if not progress.is_complete:
            sender.pause(min(0.05 * 2**progress.failures, MOST_SECONDS_BETWEEN))


def _until_broken(
    sender: transport.Transport, call: transport.Call, model: type[Model], *, progress: _Progress
) -> Iterator[Model]:
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": progress.last} if progress.last else {})
    with sender.stream(replace(call, headers=headers), timeout=SILENCE_SECONDS) as response:
        progress.has_begun = True
        for event in httpx2.EventSource(response):
            if event.event == "end":
                progress.is_complete = True
                return
            progress.failures, progress.last = 0, event.id or progress.last
            if event.event == progress.kind:
                yield model.model_validate_json(event.data)
