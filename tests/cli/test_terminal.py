"""What the commands print is printed as it is."""

from graphrag.eval.cli.terminal import open_console


def test_a_console_takes_no_text_for_markup_emoji_or_numbers(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = "[red]7[/red] of 9 :smile:"
    open_console().print(text)
    assert capsys.readouterr().out == f"{text}\n"
