"""The pages about the command line say what there is."""

import click
import pytest
from click import testing

from aliquot.cli import main
from tests.house import sources

PAGE = (sources.ROOT / "docs" / "reference" / "cli.md").read_text()


def commands() -> list[tuple[str, click.Command]]:
    """Every command with its name as it is typed."""
    found = []
    for name, entry in main.COMMANDS.items():
        command = main.load(entry)
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", one) for inner, one in command.commands.items()]
    return found


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_command_and_option_is_on_the_page(name: str, command: click.Command) -> None:
    options = [
        opt for param in command.params if isinstance(param, click.Option) for opt in param.opts if opt[:2] == "--"
    ]

    assert f"`aliquot {name}" in PAGE
    assert [option for option in options if f"`{option}" not in PAGE] == []


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_says(name: str) -> None:
    entry = main.COMMANDS[name]

    command = main.load(entry)

    assert command.name == name
    assert (command.help or "").strip()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(shell: str) -> None:
    answer = testing.CliRunner().invoke(main.cli, ["completion", shell])

    assert answer.exit_code == 0
    assert "_ALIQUOT_COMPLETE" in answer.output
