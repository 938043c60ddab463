"""A server that answers from a script, for tests of what the client does when things go wrong."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliquot import client
from aliquot.api import problems
from aliquot.core import errors

Answer = tuple[int, bytes, dict[str, str]]
"""Status, body and headers."""


@dataclass
class Scripted:
    """A server that gives the answers of a script, one for each request, the last one again and again."""

    answers: list[Answer | None]
    """None closes the connection without an answer."""
    seen: list[tuple[str, str, str, bytes]] = field(default_factory=list)
    """Method, path, Idempotency-Key and body of each request."""
    last_ids: list[str] = field(default_factory=list)
    """The Last-Event-ID of each request."""
    url: str = ""
    pauses: list[float] = field(default_factory=list)
    """How long the client wanted to wait."""

    def client(self) -> client.Client:
        """A client of it that waits without waiting."""
        return client.Client(self.url, "t", sleep=self.pauses.append)


@contextlib.contextmanager
def scripted(*answers: Answer | None) -> Iterator[Scripted]:
    """Run such a server."""
    script = Scripted(list(answers))

    class Handler(http.server.BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline()
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.seen.append((self.command, self.path, self.headers.get("Idempotency-Key") or "", body))
            script.last_ids.append(self.headers.get("Last-Event-ID") or "")
            answer = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            self.close_connection = True
            if answer is not None:
                self.send_response(answer[0])
                for name, value in {"Content-Length": str(len(answer[1])), "Connection": "close", **answer[2]}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer[1])

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        script.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()


def problem(error: errors.AliquotError) -> Answer:
    """What the API answers for this error."""
    answer = problems.answer(error)
    return answer.status_code, bytes(answer.body), dict(answer.headers)
