"""What 1.1.0 kept with features that are gone since: runs, a configuration, a pinned run.

The project under kept/ was made by 1.1.0. Its store has runs of a watch, at budgets, with a judge's
cache, and with a method, a judge and a measure that a package named by entry points; ratings lie
beside them, and eval_config.yaml has every key that is gone.
"""

import json
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clock_evaluation import Evaluation, flat
from support.older_stores import unpack
from support.viewed_store import serving

from graphrag.eval.config.gone_keys import GONE_KEYS
from graphrag.eval.types.own_code import list_declared

FIRST, CACHED, BASELINE, ROUND, LAST_ROUND, AT_BUDGETS, UNFINISHED = range(7)
"""The runs, the oldest first."""


class Kept(Evaluation):
    """The kept project."""

    @property
    def output(self) -> Path:
        return self.root / "results"

    def ids(self) -> list[str]:
        return [run.run_id for run in reversed(self.runs())]

    def then(self, name: str) -> Any:
        return json.loads((self.root / "then" / f"{name}.json").read_text(encoding="utf-8"))

    def now(self, run_id: str, name: str) -> Any:
        path = self.output / "runs" / run_id / f"eval_results_{name}.json"
        return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("release_1.1.0", tmp_path_factory.mktemp("release_1.1.0"))


@pytest.fixture
def kept(unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Kept]:
    root = shutil.copytree(unpacked, tmp_path / "kept")
    monkeypatch.syspath_prepend(str(root))  # where its package lies
    list_declared.cache_clear()
    yield Kept(root)
    list_declared.cache_clear()


def test_every_run_is_shown_with_the_figures_of_then(kept):
    ids = kept.ids()
    for run_id in ids:
        shown = kept.done("show", run_id, "--full").output
        assert "is left out" not in shown  # the package of its judge and measure is installed
    for name, number in (("first", FIRST), ("fewer", CACHED), ("budgets", AT_BUDGETS)):
        then, now = kept.then(f"{name}_detailed"), kept.now(ids[number], "detailed")
        assert now["results"] == then["results"], name
        then, now = kept.then(f"{name}_summary"), kept.now(ids[number], "summary")
        for of_method in then["efficiency"].values():
            del of_method["judge_reused_replies"]  # it went with the judge's cache
        for section in ("by_method", "by_movie", "efficiency"):
            assert now[section] == then[section], (name, section)
        assert now["by_method"], name
    assert kept.now(ids[AT_BUDGETS], "summary")["by_method"].keys() == {
        f"{method}@{budget}" for method in ("tog", "bm25") for budget in (200, 300, 400)
    }


def test_kept_runs_are_compared_and_judged_again(kept):
    ids = kept.ids()
    compared = kept.root / "compared.json"
    kept.run("compare", ids[CACHED], ids[FIRST], "--json", str(compared))
    items = json.loads(compared.read_text(encoding="utf-8"))["items"]
    assert items == kept.then("compared")["items"]
    compared.unlink()
    kept.run("compare", ids[CACHED], "pinned", "--json", str(compared))
    assert json.loads(compared.read_text(encoding="utf-8"))["items"] == items
    kept.done("judge", ids[AT_BUDGETS], "--metrics", "relevance", "--config", "at_budgets.yaml")
    judged = kept.now(kept.ids()[-1], "detailed")["results"]
    assert [row["methods"].keys() for row in judged] == [
        row["methods"].keys() for row in kept.then("budgets_detailed")["results"]
    ]


def test_every_run_has_a_page(kept):
    ids = kept.ids()
    with serving(kept.output) as served:
        listed = served.client.get("/").text
        for run_id in ids:
            assert run_id in listed
            page = served.client.get(f"/runs/{run_id}")
            assert page.status_code == 200
        assert "Of 6 questions right: tog 4, bm25 4, basic 3" in flat(
            served.client.get(f"/runs/{ids[FIRST]}").text
        )


def test_a_name_of_an_entry_point_is_told_how_to_be_written(kept):
    assert "write 'house_pack:politeness'." in flat(kept.done(code=2).output)
    kept.configure(metrics=["correctness", "house_pack:politeness"])
    assert "write 'house_pack:shortness'." in flat(kept.done(code=2).output)
    kept.configure(measures={"further": ["house_pack:shortness"]})
    assert "write {name: echo, function: 'house_pack:echo'}." in flat(kept.done(code=2).output)


def test_an_unfinished_run_of_another_version_is_judged_instead_of_resumed(kept):
    unfinished = kept.ids()[UNFINISHED]
    said = flat(kept.done("--resume", "--config", "unfinished.yaml", code=2).output)
    assert 'releases.gtog: "1.1.0" -> ' in said
    assert (
        f"Another version began it. Judge what it answered with: graphrag eval judge {unfinished}"
        in said
    )
    kept.done("judge", unfinished, "--config", "unfinished.yaml")
    assert kept.runs()[0].setup.responses_of == unfinished
    assert len(kept.responses()) == 10


def test_a_configuration_with_every_gone_key_is_read_with_a_warning_each(kept):
    path = kept.root / "eval_config.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config |= {"methods": ["tog", "bm25"], "metrics": ["correctness"], "budgets": [200, 400]}
    config["judge"] = {**config["judge"], "model": None}
    config["measures"] = {"aspect_share": 0.7}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    said = kept.done("--dry-run").output
    for name, instead in GONE_KEYS.items():
        section, _, key = name.rpartition(".")
        assert key in (config[section] if section else config), name
        assert flat(said).count(f"Warning: {name} is read no more: {flat(instead)}") == 1
