"""Where a PostgreSQL store is named, and that its password stays there; no server is needed."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.eval.cli.location import Place
from graphrag.eval.config import EvaluationConfig, without_password
from graphrag.eval.errors import ConfigError, UsageError
from graphrag.eval.store import EvaluationStore, StoreLocation

PASSWORD = "planted%2FPassw0rd"
URL = f"postgresql://ann:{PASSWORD}@db.example:5433/runs?sslmode=require"
NOBODY = f"postgresql://ann:{PASSWORD}@127.0.0.1:1/runs?connect_timeout=2"


def config(folder: Path, url: str = URL) -> EvaluationConfig:
    path = folder / "eval_config.yaml"
    path.write_text(f"output:\n  store: '{url}'\n", encoding="utf-8")
    return EvaluationConfig.from_yaml(path)


def test_what_is_kept_of_the_settings_lacks_the_password(tmp_path: Path):
    given = config(tmp_path)
    assert StoreLocation.of(given).url == URL
    kept = given.to_dict()["output"]
    assert kept["store"] == "postgresql://db.example:5433/runs?user=ann&sslmode=require"  # type: ignore
    for text in (repr(given), str(kept), repr(StoreLocation.of(given)), repr(Place(store=URL))):
        assert PASSWORD not in text
    assert str(StoreLocation.of(given)) == "postgresql://db.example:5433/runs"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{PASSWORD}@other@host/runs",
        f"postgresql://ann:pass/{PASSWORD}@host/runs",
        f"mysql://ann:{PASSWORD}@host/runs",
        f"results/{PASSWORD}.db",
        "postgresql://",
    ],
)
def test_what_is_no_address_is_refused_without_showing_it(tmp_path: Path, url: str):
    with pytest.raises(ConfigError, match=r"output\.store: ") as caught:
        config(tmp_path, url)
    assert PASSWORD not in str(caught.value)


def test_the_flag_goes_before_the_file_and_both_before_eval_db(tmp_path: Path):
    assert Place(tmp_path, output=Path("out")).store_path().url is None
    config(tmp_path)
    other = "postgresql://bob@other/runs"
    assert Place(tmp_path).store_path().url == URL
    assert Place(tmp_path, output=Path("out")).store_path() == StoreLocation(tmp_path / "out", URL)
    assert Place(tmp_path, store=other).store_path().url == other
    assert Place(tmp_path, output=Path("out"), store=other).read_config().output.store == other


def test_commands_take_the_store_from_flag_and_variable_and_never_show_its_password(
    tmp_path: Path,
):
    history = ["history", "--output", str(tmp_path)]
    by_flag = CliRunner().invoke(app, ["eval", "--store", NOBODY, *history])
    by_variable = CliRunner().invoke(app, ["eval", *history], env={"GRAPHRAG_EVAL_STORE": NOBODY})
    for result in (by_flag, by_variable):
        assert result.exit_code == 1, result.output
        assert "postgresql://127.0.0.1:1/runs can't be opened" in result.output
        assert PASSWORD not in result.output
    wrong = CliRunner().invoke(app, ["eval", "--store", f"ann:{PASSWORD}", *history])
    assert wrong.exit_code == 2
    assert "--store: a store is named by" in wrong.output
    assert PASSWORD not in wrong.output


def test_commands_that_follow_name_the_store_without_its_password(tmp_path: Path):
    arguments = ["eval", "--store", NOBODY, "baseline", "set", "latest", "--root", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    line = f"eval --store '{without_password(NOBODY)}' init"
    assert line in result.output.replace("\n", " "), result.output


def test_without_psycopg_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(sys.modules, "graphrag.eval.store.postgresql", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"needs psycopg.*pip install \"psycopg\[binary\]"):
        EvaluationStore(StoreLocation(tmp_path, URL))
