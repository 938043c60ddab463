"""The plain start page: how the server does, its devices, its workloads; or, without a session, how to get in.

Promises: HTML alone, no script, nothing from elsewhere; every text that a user chose is escaped, in the one place
(`_cell`) through which all text goes. The web page of a later issue takes this place.
"""

import html
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from string import Template

from fastapi import APIRouter, Request, Response, responses, status

from aliquot.api import bodies, given, guard
from aliquot.core import errors
from aliquot.core.model import WHOLE_DEVICE_MILLI
from aliquot.service import paging
from aliquot.wire import nodes, records, workloads

pages = APIRouter(include_in_schema=False, route_class=bodies.StrictRoute)

REFRESH_SECONDS = 5
MOST_WORKLOADS = 100
MOST_DEVICES = 256

_POLICY = "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_GOOD = {"running", "succeeded"}
_BAD = {"failed", "failing"}

_STYLE = """
:root { color-scheme: light dark; --text: #1c2127; --quiet: #5f6b7a; --line: #d9dee5; --page: #fbfcfd; --good: #16703c;
  --bad: #b3261e; --accent: #2a5bd7 }
@media (prefers-color-scheme: dark) { :root { --text: #e3e7ec; --quiet: #97a3b2; --line: #2c343e; --page: #14181d;
  --good: #63c98d; --bad: #f2857c; --accent: #8fb0ff } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.25rem; max-width: 76rem; background: var(--page); color: var(--text);
  font: 14px/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums }
header { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline }
h1 { font-size: 1.25rem; margin: 0 } h2 { font-size: 1rem; margin: 1.75rem 0 .4rem }
p { margin: .25rem 0 } .quiet { color: var(--quiet) } .good { color: var(--good) } .bad { color: var(--bad) }
.notice { border-left: 3px solid var(--bad); padding-left: .6rem; margin: .8rem 0 }
code { font: 13px ui-monospace, monospace } .scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th { text-align: start; font-weight: 600; color: var(--quiet); white-space: nowrap }
th, td { padding: .28rem .8rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td { overflow-wrap: anywhere } .number, th.number { text-align: end; white-space: nowrap } .name { font-weight: 600 }
meter { width: 6rem; vertical-align: middle }
button { font: inherit; color: var(--accent); background: none; border: 0; padding: 0; cursor: pointer }
form { margin-left: auto }
"""

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="$refresh">
<title>Aliquot</title>
<style nonce="$nonce">$style</style>
</head>
<body>
$body
</body>
</html>
""")


@dataclass(frozen=True, slots=True)
class _Cell:
    """Text in a table. `kind`: one of the classes of the style."""

    text: str
    kind: str = ""
    share: int | None = None
    """How much of a device, in thousandths, drawn as a bar."""


@pages.get("/")
async def start_page(request: Request, services: given.Services) -> Response:
    """The page for a browser with a session, else the way to get one."""
    try:
        who = await guard.authenticate(services.access, request)
    except errors.Unauthenticated:
        return closed_door("this browser is not signed in", status_code=status.HTTP_200_OK)
    state = await services.server.status(who)
    devices = await services.nodes.devices(who, paging.ListRequest(limit=MOST_DEVICES))
    newest = await services.workloads.list(who, paging.ListRequest(limit=MOST_WORKLOADS))
    body = [_head(state), *_devices(devices.items, state), *_workloads(newest.items, newest.total)]
    return _page("\n".join(body))


def closed_door(reason: str, *, status_code: int = status.HTTP_401_UNAUTHORIZED) -> Response:
    """What a browser without a session sees."""
    body = (
        "<header><h1>Aliquot</h1></header>"
        f"<p>{html.escape(reason[:1].upper() + reason[1:])}.</p>"
        "<p>On the machine that runs the server, type <code>aliquot sign-in</code>: "
        "it prints a link that signs this browser in, once.</p>"
    )
    return _page(body, status_code=status_code)


def _page(body: str, *, status_code: int = status.HTTP_200_OK) -> Response:
    nonce = secrets.token_urlsafe(16)
    policy = f"default-src 'none'; style-src 'nonce-{nonce}'; {_POLICY}"
    text = _PAGE.substitute(refresh=REFRESH_SECONDS, nonce=nonce, style=_STYLE, body=body)
    return responses.HTMLResponse(text, status_code, headers={"Content-Security-Policy": policy})


def _head(state: records.Status) -> str:
    said = html.escape
    notice = f'<p class="notice">{said(state.notice)}</p>' if state.notice else ""
    return (
        f'<header><h1>Aliquot</h1><span class="quiet">{said(state.version)} on {said(state.node)}</span>'
        '<form method="post" action="/api/v1/sign-out"><button>Sign out</button></form></header>'
        f"{notice}<p>{state.running} running, {state.waiting} waiting. {said(state.devices.description)}</p>"
        f'<p class="quiet">Limits on CPU and memory: {said(state.limits)}. Runs the work of {said(state.user)}; '
        f"up since {_when(state.started)}. Data in <code>{said(state.data_directory)}</code>.</p>"
    )


def _devices(devices: Sequence[nodes.DeviceView], state: records.Status) -> list[str]:
    if not devices:
        return ["<h2>Devices</h2>", '<p class="quiet">None: work that asks for no GPU runs.</p>']
    heads = ["Device", "Model", "Memory", "Held", "Use", "Guarantee", "By"]
    rows = [
        [
            _Cell(f"{device.node}/{device.index}", "name"),
            _Cell(device.model + (" (simulated)" if device.is_simulated else "")),
            _Cell(f"{device.memory_mib / 1024:.0f} GiB", "number"),
            _Cell(f"{device.held_milli_gpus / WHOLE_DEVICE_MILLI:g}", "number", share=device.held_milli_gpus),
            _Cell(_use(device), "number"),
            _Cell(str(device.guarantee), "quiet"),
            _holders(device),
        ]
        for device in devices
    ]
    count = f"{state.devices.count} device{'' if state.devices.count == 1 else 's'}"
    return [f"<h2>{count}</h2>", _table(heads, rows)]


def _use(device: nodes.DeviceView) -> str:
    use = device.use
    if use is None or use.utilisation_percent is None:
        return "not measured"
    return f"{use.utilisation_percent} %"


def _holders(device: nodes.DeviceView) -> _Cell:
    if device.withheld:
        return _Cell(device.withheld_description or device.withheld, "bad")
    if not device.holders:
        return _Cell("free", "quiet")
    return _Cell(", ".join(holder.workload_name for holder in device.holders))


def _workloads(items: Sequence[workloads.WorkloadView], total: int) -> list[str]:
    if not items:
        return ["<h2>Workloads</h2>", '<p class="quiet">None yet: <code>aliquot run -- COMMAND</code> starts one.</p>']
    heads = ["Name", "Project", "Phase", "GPU", "Devices", "Ran", "Created", "What there is to say"]
    rows = [
        [
            _Cell(item.name, "name"),
            _Cell(item.project),
            _Cell(item.phase, "good" if item.phase in _GOOD else "bad" if item.phase in _BAD else ""),
            _Cell((f"{item.replicas} × " if item.replicas > 1 else "") + item.gpu, "number"),
            _Cell(", ".join(item.devices)),
            _Cell(str(timedelta(seconds=item.ran_seconds)), "number"),
            _Cell(_when(item.created), "quiet"),
            _Cell(_remark(item), "quiet"),
        ]
        for item in items
    ]
    more = [f'<p class="quiet">The newest {len(items)} of {total}.</p>'] if total > len(items) else []
    return ["<h2>Workloads</h2>", _table(heads, rows), *more]


def _remark(item: workloads.WorkloadView) -> str:
    if item.reason is not None:
        return item.reason.message
    if item.outcome is not None and item.exit_code is not None:
        return f"{item.outcome}, exit code {item.exit_code}"
    return item.outcome or item.url or ""


def _when(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _table(heads: Sequence[str], rows: Sequence[Sequence[_Cell]]) -> str:
    """A table; the head of a column of numbers stands above them."""
    kinds = [' class="number"' if cell.kind == "number" else "" for cell in rows[0]]
    head = "".join(f'<th scope="col"{kind}>{html.escape(text)}</th>' for text, kind in zip(heads, kinds, strict=True))
    body = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _cell(cell: _Cell) -> str:
    kind = f' class="{cell.kind}"' if cell.kind else ""
    bar = "" if cell.share is None else f'<meter max="{WHOLE_DEVICE_MILLI}" value="{cell.share}"></meter> '
    return f"<td{kind}>{bar}{html.escape(cell.text)}</td>"
