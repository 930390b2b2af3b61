"""Success criteria that a run could not be held to, refused before its first call."""

from collections.abc import Iterable, Sequence

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import DEFAULT_CRITERIA
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.records import METRICS
from graphrag.eval.runner.verdicts import judgeable
from graphrag.eval.scorers.measuring import list_forms
from graphrag.eval.scorers.quality import QUALITY_MEASURES
from graphrag.eval.scorers.rubric import DIMENSIONS

AVERAGES = ("avg_latency", "avg_llm_calls", "avg_prompt_tokens", "avg_output_tokens")
"""The means of a method's searches that can be criteria, as the results name them."""
_OF_THE_JUDGE = ("judge_score", "combined_score")


def check_success(config: EvaluationConfig, samples: Sequence[Sample], skip_judge: bool) -> None:
    """Refuse a criterion of an unknown name, or that nothing in the run will measure.

    Those that hold for every run by default are left alone: they say "not measured".

    Raises
    ------
    ConfigError
        Naming the criterion, and the nearest known name or what is missing.
    """
    forms = {form.name: form.measure for form in list_forms(tuple(config.measures.cutoffs))}
    known = [
        *forms,
        *METRICS,
        *AVERAGES,
        *(f"rubric.{name}" for name in DIMENSIONS),
        *(f"quality.{name}" for name in QUALITY_MEASURES),
    ]
    for criterion in config.measures.criteria:
        name = criterion.metric
        if name not in known:
            msg = f"measures.criteria: unknown name {name!r}{nearest(name, known)}"
            raise ConfigError(as_sentence(msg))
        if criterion in DEFAULT_CRITERIA:
            continue
        needs = forms[name].needs if name in forms else ()
        lacking = _lack_of_judge(name, config, samples, skip_judge)
        if lacking is None and needs and not _is_given(needs, config, samples):
            lacking = f"no question names {' or '.join(needs)}"
        if lacking is not None:
            msg = (
                f"measures.criteria: {name} would not be measured, as {lacking}; change that, or "
                "leave the criterion out."
            )
            raise ConfigError(msg)


def _lack_of_judge(
    name: str, config: EvaluationConfig, samples: Sequence[Sample], skip_judge: bool
) -> str | None:
    kind, _, _ = name.partition(".")
    if name in _OF_THE_JUDGE:
        kind = "quality" if config.judge.quality else "correctness"
    if kind not in ("rubric", "quality", *METRICS):
        return None
    if skip_judge:
        return "the judge is not asked"
    if kind == "rubric":
        return None if config.judge.rubric else "judge.rubric is off"
    if kind == "quality":
        return None if config.judge.quality else "judge.quality is off"
    if kind not in config.metrics:
        return f"metrics leaves {kind} out"
    if not any(judgeable(sample, (kind,)) for sample in samples):
        return f"no question has an answer, which {kind} needs"
    return None


def _is_given(needs: Iterable[str], config: EvaluationConfig, samples: Sequence[Sample]) -> bool:
    return any(
        getattr(config.measures, name, None)
        or any(getattr(sample, name, None) or sample.tags.get(name) for sample in samples)
        for name in needs
    )
