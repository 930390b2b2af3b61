"""Text units and the words of their passages: counted once, mapped afterwards, never believed."""

import asyncio
import hashlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from support.language_worlds import FOLDER as WORLDS
from support.language_worlds import LANGUAGES
from support.projects import offline_settings

from graphrag.query.graph_index import GraphIndex
from graphrag.query.index.text_languages import FOLDER, WORDS_VERSION
from graphrag.text.stems import stem
from graphrag.text.tokenize import split_terms

QUESTION = "Who repaired the lamp in the storm?"
TEXTS = [
    "The captain sold a whale.",
    "Mara repaired the lamp. " * 120 + "A storm took the ferry. " * 120,
    "A storm, a lamp and a letter.",
    "灯台守は大きなランプを修理した。",
]


def write_project(root: Path, texts: list[str] = TEXTS, extra: str = "") -> Path:
    """Write a project whose index has text units alone."""
    root.mkdir(exist_ok=True)
    (root / "settings.yaml").write_text(offline_settings() + extra, encoding="utf-8")
    numbers = range(len(texts))
    units = {"id": [f"u{n}" for n in numbers], "human_readable_id": numbers, "text": texts}
    (root / "output").mkdir(exist_ok=True)
    pd.DataFrame(units).to_parquet(root / "output" / "text_units.parquet", compression=None)
    return root


def asked(root: Path, question: str = QUESTION) -> str:
    """Return what bm25 shows of a question, by an index that was just opened."""

    async def search() -> str:
        index = await GraphIndex.open(root, vectors=False)
        return str((await index.search("bm25", question)).context_text)

    return asyncio.run(search())


def kept(root: Path, kind: str = "words") -> list[Path]:
    return sorted((root / "output" / FOLDER).glob(f"{kind}-*"))


def test_words_are_counted_once_and_texts_are_written_once(tmp_path):
    root = write_project(tmp_path / "project")
    first = asked(root)
    before = [path.stat() for path in (*kept(root), *kept(root, "texts"))]
    assert len(before) == 2
    assert first.count("lamp") > 1
    assert asked(root) == first
    assert [path.stat() for path in (*kept(root), *kept(root, "texts"))] == before
    assert "captain" in asked(root, "Who sold the whales?"), "words without their endings"
    assert "灯台" in asked(root, "灯台"), "of scripts without spaces"
    assert asked(root, "Who is Ignatius?").strip() in ("", '""', "id|text")


def test_changed_texts_are_counted_anew(tmp_path):
    """Also where the file has the length and the time that it had."""
    root = write_project(tmp_path / "project")
    path, old = root / "output" / "text_units.parquet", asked(root)
    status, old_folders = path.stat(), {*kept(root), *kept(root, "texts")}
    write_project(root, [text.replace("lamp", "lens") for text in TEXTS])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size

    assert "lens" in asked(root)
    assert "lens" in asked(root, "Where is the lens?")
    assert asked(root) != old
    assert len(kept(root)) == len(kept(root, "texts")) == 1, "what was of the old texts is gone"
    assert old_folders.isdisjoint({*kept(root), *kept(root, "texts")})


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "removed": lambda path: path.unlink(),
    "of other texts": lambda path: path.write_bytes((path.parent / "n_texts.npy").read_bytes()),
}


@pytest.mark.parametrize(
    ("damage", "kind", "name"),
    [
        ("cut short", "words", "scores.npy"),
        ("emptied", "words", "words.npy"),
        ("removed", "words", "text_ptr.npy"),
        ("of other texts", "words", "first.npy"),
        ("cut short", "texts", "text_units.arrow"),
        ("removed", "texts", "text_units.arrow"),
    ],
)
def test_damaged_files_are_made_again(tmp_path, damage, kind, name, caplog):
    root = write_project(tmp_path / "project")
    expected = asked(root)
    (folder,) = kept(root, kind)
    DAMAGE[damage](folder / name)
    for n_said in (1, 0):
        caplog.clear()
        assert asked(root) == expected
        assert sum("is built again" in record.message for record in caplog.records) == n_said


def test_where_nothing_can_be_kept_words_are_counted_in_memory(tmp_path, caplog):
    """As on a read-only disk, and for root as well: a file has the folder's name."""
    root = write_project(tmp_path / "project")
    expected = asked(root)
    other = write_project(tmp_path / "other")
    (other / "output" / FOLDER).write_text("in the way", encoding="utf-8")
    caplog.clear()
    assert asked(other) == asked(other) == expected
    (warning,) = (r.message for r in caplog.records if r.levelno == logging.WARNING)
    assert "can't be kept next to the index" in warning


def test_what_words_depend_on_names_their_folder(tmp_path, monkeypatch):
    """Languages and versions replace what there was; passages of other sizes stand beside it."""
    root = write_project(tmp_path / "project")
    asked(root)
    (of_found,) = kept(root)
    write_project(root, extra="languages: [de]\n")
    asked(root)
    (of_german,) = kept(root)
    monkeypatch.setattr("graphrag.query.index.texts.WORDS_VERSION", WORDS_VERSION + 1)
    asked(root)
    (of_later,) = kept(root)
    assert len({of_found, of_german, of_later}) == 3

    write_project(root, extra="languages: [de]\nbasic_search: {passage_tokens: 100}\n")
    asked(root)
    assert of_later in kept(root)
    assert len(kept(root)) == 2


_ASK = """
import asyncio, sys
from graphrag.query.graph_index import GraphIndex
async def main():
    index = await GraphIndex.open(sys.argv[1], vectors=False)
    print("ready", flush=True)
    sys.stdin.readline()
    print((await index.search("bm25", sys.argv[2])).context_text)
asyncio.run(main())
"""


@pytest.mark.slow
def test_processes_that_count_at_once_do_not_disturb_each_other(tmp_path):
    root, pipes = write_project(tmp_path / "project"), subprocess.PIPE
    command = [sys.executable, "-c", _ASK, str(root), QUESTION]
    others = [
        subprocess.Popen(command, stdin=pipes, stdout=pipes, text=True, encoding="utf-8")
        for _ in range(2)
    ]
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
    told = [other.communicate("go\n", timeout=120)[0] for other in others]
    assert [other.returncode for other in others] == [0, 0]
    assert [text.strip() for text in told] == [asked(root).strip()] * 2
    assert len(kept(root)) == 1


def test_the_version_of_words_goes_with_them():
    """Kept words are compared with those of a question: raise WORDS_VERSION where they change."""
    digest = hashlib.blake2b(digest_size=8)
    for language in LANGUAGES:
        text = (WORLDS / f"{language}.txt").read_text("utf-8")
        digest.update(json.dumps(split_terms(text.splitlines())).encode())
    ours = ["went", "mice", "children", "better", "1,000", "don't"]
    digest.update(json.dumps([stem(word) for word in ours]).encode())
    assert (WORDS_VERSION, digest.hexdigest()) == (4, "84b266ebde72adaf")
