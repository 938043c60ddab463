"""`aliquot ledger`: whether what is held adds up."""

import click

from aliquot.cli import connection, exits, output, words
from aliquot.core import quantities
from aliquot.wire import records


@click.command()
@output.option
@click.pass_context
def ledger(context: click.Context, layout: output.Format) -> None:
    """Check that what living pods hold equals the open entries of the ledger; exit code 1 if not."""
    audit = connection.open_client().audit_ledger()
    output.write(audit, layout, lambda _: describe(audit))
    context.exit(exits.OK if audit.is_balanced else exits.FAILED)


def describe(audit: records.LedgerAudit) -> str:
    """The audit in words."""
    held, entered = (quantities.format_milli(amount) for amount in (audit.held_milli_gpus, audit.ledger_milli_gpus))
    verdict = "balanced" if audit.is_balanced else "NOT balanced"
    entries = words.plural(audit.open_entries, "open entry adds", "open entries add")
    lines = [f"The ledger is {verdict}: pods hold {held} GPU, {entries} up to {entered}."]
    return "\n".join([*lines, *(f"  {fault}" for fault in audit.faults)])
