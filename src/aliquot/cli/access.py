"""`aliquot token` and `aliquot sign-in`: how programs and browsers get in."""

from datetime import UTC, datetime

import click

from aliquot.cli import connection, output, render, words


@click.command()
def token() -> None:
    """Print the administrator's token: whoever has it may do all."""
    print(connection.find_token())


@click.command("sign-in")
@output.option
def sign_in(layout: output.Format) -> None:
    """Print a link that signs one browser in, once."""
    link = connection.open_client().create_sign_in_link()
    output.write(link, layout, lambda _: link.url)
    if layout is output.Format.TABLE:
        render.say(f"valid once, for {words.age(datetime.now(UTC), link.expires)}")
