"""What a browser sees that does not get to the page: a used sign-in link, or a checkout whose page is not built.

Promises: HTML alone, no script and nothing from elsewhere; every text is escaped.
"""

import html
import secrets
from string import Template

from fastapi import Response, responses, status

_POLICY = "default-src 'none'; style-src 'nonce-{nonce}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Aliquot</title>
<style nonce="$nonce">
:root { color-scheme: light dark }
body { margin: 12vh auto; padding: 0 1rem; max-width: 34rem; font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.25rem }
code { font: 13px ui-monospace, monospace }
</style>
</head>
<body>
<main>
<h1>Aliquot</h1>
<p>$reason.</p>
<p>$help</p>
</main>
</body>
</html>
""")


def closed(reason: str) -> Response:
    """This browser does not get in this way; how it would."""
    help_text = (
        "On the machine that runs the server, type <code>aliquot sign-in</code>: it prints a link that signs this "
        'browser in, once. Or <a href="/">sign in with the token</a>.'
    )
    return _answer(reason, help_text, status.HTTP_401_UNAUTHORIZED)


def not_built() -> Response:
    """A checkout that was not set up by `make up`: all but the page works."""
    help_text = "Type <code>make page</code> in the checkout. The command line and the API work without it."
    return _answer("the page is not built", help_text, status.HTTP_503_SERVICE_UNAVAILABLE)


def _answer(reason: str, help_text: str, status_code: int) -> Response:
    nonce = secrets.token_urlsafe(16)
    said = html.escape(reason[:1].upper() + reason[1:])
    text = _PAGE.substitute(nonce=nonce, reason=said, help=help_text)
    return responses.HTMLResponse(text, status_code, headers={"Content-Security-Policy": _POLICY.format(nonce=nonce)})
