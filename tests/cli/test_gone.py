"""What a command or flag of an earlier version says, which the README and --help name no more."""

import pytest
from support.clock_evaluation import flat, in_process

from graphrag.eval.cli.gone import GONE_COMMANDS, GONE_FLAGS

USAGE = 2


@pytest.mark.parametrize("name", GONE_COMMANDS)
@pytest.mark.parametrize("more", [(), ("--help",), ("latest", "--every", "6h")])
def test_a_gone_command_says_what_to_do_instead(name, more):
    refused = in_process(name, *more)
    assert (refused.exit_code, refused.stdout) == (USAGE, "")
    assert flat(refused.stderr) == f"Error: {name} {_GONE} {GONE_COMMANDS[name]}."


@pytest.mark.parametrize("name", GONE_FLAGS)
def test_a_gone_flag_says_what_to_do_instead(name):
    *command, flag = name.split()
    sentence = f"{_GONE} {GONE_FLAGS[name]}."
    for words in ([flag, "5"], [f"{flag}=5"], ["--quiet", flag]):
        refused = in_process(*command, *words)
        assert (refused.exit_code, refused.stdout) == (USAGE, "")
        assert flat(refused.stderr) == f"Error: {flag} {sentence}"
    variable = "_".join(["GRAPHRAG_EVAL", *command, flag.strip("-").replace("-", "_")]).upper()
    refused = in_process(*command, **{variable: "5"})
    assert (refused.exit_code, refused.stdout) == (USAGE, "")
    assert flat(refused.stderr) == f"Error: {variable} {sentence}"


def test_what_never_was_a_flag_or_a_command_is_called_that():
    for words in (("validate", "--markdwn"), ("validatte",), ("show", "--markdown")):
        refused = in_process(*words)
        assert refused.exit_code == USAGE
        assert "No such" in refused.stderr
        assert "is gone" not in refused.stderr


def test_the_help_names_nothing_that_is_gone():
    for command in ([], *([name.split()[0]] for name in GONE_FLAGS if " " in name)):
        shown = in_process(*command, "--help").stdout
        for name in (*GONE_COMMANDS, *GONE_FLAGS):
            *of, word = name.split()
            assert of not in ([], command) or f" {word} " not in shown, (command, name)


_GONE = "is gone since version 2.0.0;"
