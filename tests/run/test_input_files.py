"""What is said of input files that give an index nothing."""

import asyncio
from pathlib import Path

import pytest
from support.projects import offline_settings

from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.preflight import list_input_warnings

SETTINGS = offline_settings(8)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "good.txt").write_text("Agnes Holt went to Zürich.", encoding="utf-8")
    return tmp_path


ENCODED = (
    "town: the input file old.txt is not utf-8 (byte 0xe9 at 3 of old.txt) and left out of the "
    "index; save as utf-8, or name the encoding in input.encoding"
)
EMPTY = "town: 2 input files, such as blank.txt, have no text and can not be found by any search"
LATIN = "input: {type: text, encoding: latin-1}\n"


@pytest.mark.parametrize(
    ("files", "more", "warnings"),
    [
        ({"picture.png": b"\xff\xfe"}, "", []),
        ({"old.txt": b"Caf\xe9"}, "", [ENCODED]),
        ({"good.txt": b"Caf\xe9"}, LATIN, []),
        ({"blank.txt": b" \n\n", "empty.txt": b""}, "", [EMPTY]),
    ],
)
def test_files_that_give_nothing_are_named(project, files, more, warnings):
    for name, content in files.items():
        (project / "input" / name).write_bytes(content)
    (project / "settings.yaml").write_text(SETTINGS + more, encoding="utf-8")
    assert asyncio.run(list_input_warnings("town", project)) == warnings


@pytest.mark.parametrize("lacking", ["a text file", "the folder", "text"])
def test_a_project_without_a_text_is_refused(project, lacking):
    folder = project / "input"
    reason = f"no file in {folder} matches .*\\.txt$; put the texts there, or name others in "
    reason += "input.file_pattern or input_storage.base_dir"
    if lacking == "text":
        for name in ("good.txt", "other.txt"):
            (folder / name).write_text("\n \n", encoding="utf-8")
        reason = f"2 files in {folder} have no text"
    else:
        (folder / "good.txt").rename(folder / "good.md")
    if lacking == "the folder":
        folder.rename(project / "texts")
    with pytest.raises(ConfigError) as refused:
        asyncio.run(list_input_warnings("town", project))
    assert str(refused.value) == f"Index town can't be built: {reason}"
