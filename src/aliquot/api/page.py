"""The web page: what `make page` built from `ui/`, served from the folder `built` beside this file.

Promises: every path that is no file of the page and not under /api gets the page itself, which knows what the path
means; its policy allows scripts of this server alone and only the styles that this answer names by a nonce; files
whose names carry the hash of their content are kept by browsers for ever, the page never.
"""

import mimetypes
import pathlib
import secrets

from fastapi import APIRouter, Request, Response, responses
from starlette.exceptions import HTTPException

from aliquot.api import door

pages = APIRouter(include_in_schema=False)  # Any parameter may stand in the URL of a view: the page knows which.

BUILT = pathlib.Path(__file__).parent / "built"
NONCE = "NONCE-OF-THIS-ANSWER"
"""Stands in the built page where the nonce goes; `ui/vite.config.ts` has the same word."""
FOR_EVER = "public, max-age=31536000, immutable"
FOR_AN_HOUR = "public, max-age=3600"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@pages.get("/{path:path}")
async def page(request: Request, path: str) -> Response:
    """A file of the page, else the page."""
    if path == "api" or path.startswith("api/"):
        raise HTTPException(404)
    wanted = (BUILT / path).resolve()
    if path and wanted.is_file() and wanted.is_relative_to(BUILT.resolve()) and wanted.suffix not in {".html", ".gz"}:
        return _file(wanted, path, accepts_gzip="gzip" in request.headers.get("accept-encoding", ""))
    if path.startswith("assets/"):
        raise HTTPException(404)  # A page of an older build asks for what is gone: it must not take this for a script.
    return _page()


def _file(file: pathlib.Path, path: str, *, accepts_gzip: bool) -> Response:
    kept = FOR_EVER if path.startswith("assets/") else FOR_AN_HOUR
    headers = {"Cache-Control": kept, "Vary": "Accept-Encoding"}
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    packed = file.with_name(f"{file.name}.gz")
    if accepts_gzip and packed.is_file():
        return responses.FileResponse(packed, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})
    return responses.FileResponse(file, media_type=media_type, headers=headers)


def _page() -> Response:
    index = BUILT / "index.html"
    if not index.is_file():
        return door.not_built()
    nonce = secrets.token_urlsafe(16)
    text = index.read_text(encoding="utf-8").replace(NONCE, nonce)
    policy = _POLICY.format(nonce=nonce)
    return responses.HTMLResponse(text, headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"})
