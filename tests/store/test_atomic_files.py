"""A file is there whole or as it was, and one that a person named stays what it is."""

import os
from pathlib import Path

import pytest

from graphrag.eval.errors import StoreError
from graphrag.eval.store.atomic_files import write_file, write_whole


def break_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_the_earlier_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "report.json"
    write_file(path, "earlier\n")
    monkeypatch.setattr(os, "fsync", break_disk)
    with pytest.raises(StoreError) as plain:
        write_file(path, "later")
    assert str(plain.value) == f"{path} can't be written: No space left on device."
    with pytest.raises(StoreError, match=r"written \(No space .*\); choose another --to\.$"):
        write_file(path, "later", flag="--to")
    with pytest.raises(StoreError, match="choose another folder"):
        write_whole(path.parent, {path.name: "later"})
    assert path.read_text() == "earlier\n"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(StoreError, match="can't be written: Is a directory"):
        write_file(tmp_path, "text")


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither of these permissions")
def test_permissions_are_as_open_gives_them(tmp_path):
    named, opened = tmp_path / "named", tmp_path / "opened"
    before = os.umask(0o027)
    try:
        write_file(named, "text")
        opened.write_text("text")
    finally:
        os.umask(before)
    assert named.stat().st_mode == opened.stat().st_mode
    named.chmod(0o600)
    write_file(named, "again")
    assert named.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="making a link needs a right on Windows")
def test_links_and_devices_are_written_through(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write_file(link, b"text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    write_file(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()
