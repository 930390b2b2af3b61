"""What somebody has open is waited for where it can't be replaced, as on Windows."""

import json
from pathlib import Path, PureWindowsPath

import pytest

from graphrag.eval.errors import StoreError
from graphrag.eval.runner.benchmark_import import Import
from graphrag.eval.store.atomic_files import write_file
from graphrag.text import held_files
from graphrag.text.folder_cache import KeptFolder


@pytest.fixture
def held(monkeypatch):
    """Play a system on which files that are open can't be moved; ``held`` counts down."""
    left = {"n": 0}
    replace, rename = Path.replace, Path.rename

    def refusing(move):
        def moved(self, target):
            if left["n"]:
                left["n"] -= 1
                raise PermissionError(13, "The process cannot access the file", str(self))
            return move(self, target)

        return moved

    monkeypatch.setattr(held_files, "_HOLDS_OPEN", True)
    monkeypatch.setattr(held_files, "_WAITS_S", (0.0,) * 5)
    monkeypatch.setattr(Path, "replace", refusing(replace))
    monkeypatch.setattr(Path, "rename", refusing(rename))
    return left


def test_a_file_that_is_open_for_a_moment_is_replaced(held, tmp_path):
    path = tmp_path / "rows.csv"
    write_file(path, "old")
    held["n"] = 3
    write_file(path, "new")
    assert (path.read_text("utf-8"), held["n"]) == ("new", 0)


def test_a_file_that_stays_open_is_left_and_said(held, tmp_path):
    path = tmp_path / "rows.csv"
    write_file(path, "old")
    held["n"] = 100
    with pytest.raises(StoreError, match=r"rows.csv can't be written: The process cannot access"):
        write_file(path, "new")
    assert (path.read_text("utf-8"), [*tmp_path.iterdir()]) == ("old", [path])


def test_an_outdated_graph_that_somebody_has_mapped_stays_whole(held, tmp_path):
    outdated, current = tmp_path / "outdated", tmp_path / "current"
    for folder in (outdated, current):
        folder.mkdir()
        (folder / "degrees.npy").write_text("x", encoding="utf-8")
        (folder / "texts.arrow").write_text("x", encoding="utf-8")
    held["n"] = 1
    kept = KeptFolder(tmp_path, "", "current", "graph")
    kept._remove_outdated(current)
    assert len([*outdated.iterdir()]) == 2
    kept._remove_outdated(current)
    assert [*tmp_path.iterdir()] == [current]


@pytest.mark.parametrize("title", ["NUL", "con", "a:b\\c?", "COM1.txt", "x" * 300, "ends. "])
def test_documents_have_names_that_windows_takes(title, tmp_path):
    row = {"title": title, "text": "Ann was here."}
    file = tmp_path / "corpus.json"
    file.write_text(json.dumps([row]), encoding="utf-8")
    (name,) = Import("multihop-rag", [file]).documents
    path = PureWindowsPath(name)
    assert path.name == name
    assert not path.is_reserved()
    assert len(name) < 80
    assert not name.endswith((".", " "))
    assert not set(name) & set('<>:"/\\|?*')
