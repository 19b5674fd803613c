"""What the command says of itself: one screen, no colours in a pipe, and completion."""

import pytest
from click.testing import CliRunner

from pullback.cli import command

COMMANDS = sorted(command().commands)


def test_the_help_is_one_screen():
    lines = CliRunner().invoke(command(), ["--help"]).output.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")], "a sentence is cut off"
    assert [name for name in COMMANDS if not any(line.startswith(f"  {name} ") for line in lines)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_its_exit_codes_mean(name):
    done = CliRunner().invoke(command(), [name, "--help"])
    assert done.exit_code == 0
    assert "Exit codes: 0 " in done.output
    assert "\x1b" not in done.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell, monkeypatch):
    monkeypatch.setenv("_PULLBACK_COMPLETE", f"{shell}_source")
    done = CliRunner().invoke(command(), [], prog_name="pullback")
    assert done.exit_code == 0
    assert f"_PULLBACK_COMPLETE={shell}_complete" in done.output


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("pullback exp", ["explain"]),
        ("pullback explain CotangentS", ["CotangentShapeError"]),
        ("pullback explain upstream-i", ["upstream-ignored"]),
        ("pullback new rule --framework t", ["tensorflow", "torch"]),
    ],
)
def test_words_are_completed(words, found, monkeypatch):
    monkeypatch.setenv("_PULLBACK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    done = CliRunner().invoke(command(), [], prog_name="pullback")
    assert [line.partition(",")[2] for line in done.output.splitlines()] == found
