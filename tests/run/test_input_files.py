"""What is said of input files that give an index nothing."""

import asyncio
from pathlib import Path

import pytest

from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.checks import list_input_warnings

SETTINGS = """\
completion_models:
  default_completion_model: {type: offline, model_provider: offline, model: rules}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 8}
vector_store: {vector_size: 8}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "good.txt").write_text("Agnes Holt went to Zürich.", encoding="utf-8")
    return tmp_path


def warnings_of(project: Path) -> list[str]:
    return asyncio.run(list_input_warnings("town", project))


def test_texts_that_can_be_read_are_not_spoken_of(project: Path):
    (project / "input" / "picture.png").write_bytes(b"\xff\xfe")
    assert warnings_of(project) == []


def test_a_file_in_another_encoding_is_named_with_the_byte(project: Path):
    (project / "input" / "old.txt").write_bytes("Café".encode("latin-1"))
    assert warnings_of(project) == [
        "town: the input file old.txt is not utf-8 (byte 0xe9 at 3 of old.txt) and left out of the "
        "index; save as utf-8, or name the encoding in input.encoding"
    ]


def test_the_encoding_of_the_settings_counts(project: Path):
    (project / "input" / "good.txt").write_bytes("Café".encode("latin-1"))
    with (project / "settings.yaml").open("a", encoding="utf-8") as settings:
        settings.write("input: {type: text, encoding: latin-1}\n")
    assert warnings_of(project) == []


def test_files_without_text_are_counted(project: Path):
    (project / "input" / "blank.txt").write_text(" \n\n", encoding="utf-8")
    (project / "input" / "empty.txt").write_bytes(b"")
    assert warnings_of(project) == [
        "town: 2 input files, such as blank.txt, have no text and can not be found by any search"
    ]


@pytest.mark.parametrize("made", [True, False])
def test_a_project_without_a_text_is_refused(project: Path, made: bool):
    folder = project / "input"
    (folder / "good.txt").rename(folder / "good.md")
    if not made:
        folder.rename(project / "texts")
    with pytest.raises(ConfigError) as refused:
        warnings_of(project)
    assert str(refused.value) == (
        f"Index town can't be built: no file in {folder} matches .*\\.txt$; put the texts there, "
        "or name others in input.file_pattern or input_storage.base_dir"
    )


def test_a_project_whose_files_have_no_text_is_refused(project: Path):
    for name in ("good.txt", "other.txt"):
        (project / "input" / name).write_text("\n \n", encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        warnings_of(project)
    assert str(refused.value) == (
        f"Index town can't be built: 2 files in {project / 'input'} have no text"
    )
