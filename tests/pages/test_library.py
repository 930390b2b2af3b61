"""The drawing library's cache: whatever is wrong with it, the page gets the library."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag.eval.web.library import drawing_library, is_library_ready

BUNDLE = "var vegaEmbed;" * 1000
WANTED = f"{{{BUNDLE}}}"

SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda whole: whole[: len(whole) // 2],
    "changed": lambda whole: whole[:-9] + b"x" + whole[-8:],
    "foreign": lambda whole: b"<html>not at all</html>",
    "empty": lambda whole: b"",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a cache, and a library that is bundled at once."""
    made = tmp_path / "home"
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda: BUNDLE)
    return made


def fetch() -> str:
    drawing_library.cache_clear()
    try:
        return drawing_library()
    finally:
        drawing_library.cache_clear()


def kept(home: Path) -> Path:
    (found,) = home.rglob("vega-*.js.gz")
    return found


def never() -> str:
    pytest.fail("it is in the cache")


def test_it_is_bundled_once(home: Path, monkeypatch: pytest.MonkeyPatch):
    assert not is_library_ready()
    assert fetch() == WANTED
    assert is_library_ready()
    assert [path.name for path in kept(home).parent.iterdir()] == [kept(home).name]
    monkeypatch.setattr("vl_convert.javascript_bundle", never)
    assert fetch() == WANTED


@pytest.mark.parametrize("spoil", ["cut", "changed", "foreign", "empty"])
def test_a_damaged_file_is_made_again(home: Path, spoil: str):
    fetch()
    path = kept(home)
    whole = path.read_bytes()
    path.write_bytes(SPOILT[spoil](whole))
    assert fetch() == WANTED
    assert path.read_bytes() == whole


def test_a_home_that_holds_no_folder_costs_time_alone(home: Path):
    home.write_text("a file")
    assert fetch() == WANTED
    assert not is_library_ready()


def test_a_cache_that_can_not_be_written_costs_time_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(30, "Read-only file system")

    fetch()
    kept(home).unlink()
    # Not by its mode, as whoever is root may write in spite of it.
    monkeypatch.setattr("os.open", refuse)
    assert fetch() == WANTED


def test_without_a_home_nothing_is_written_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.path.expanduser", str)
    assert fetch() == WANTED
    assert list(tmp_path.iterdir()) == []


def test_two_processes_at_once_get_the_same(home: Path):
    context = multiprocessing.get_context("fork")
    with context.Pool(4) as pool:
        assert pool.map(_fetch_in_child, range(8)) == [WANTED] * 8
    assert [path.name for path in kept(home).parent.iterdir()] == [kept(home).name]


def _fetch_in_child(_: int) -> str:
    for path in Path.home().rglob("vega-*.js.gz"):
        path.unlink(missing_ok=True)
    return fetch()
