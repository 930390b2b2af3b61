"""Success criteria of a configuration, refused where nothing in a run would measure them."""

from collections.abc import Iterable, Sequence

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import DEFAULT_CRITERIA
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.further import SCORERS
from graphrag.eval.metrics.judge import judgeable
from graphrag.eval.metrics.measures import list_forms
from graphrag.eval.records.judged import METRICS
from graphrag.eval.results.evaluation_results import AVERAGES
from graphrag.eval.runner.judging import FAITHFULNESS
from graphrag.eval.store.records import CLAIMS


def check_success(config: EvaluationConfig, samples: Sequence[Sample], skip_judge: bool) -> None:
    """Refuse a judge that is not there, and a criterion that nothing in the run will measure.

    Those that hold for every run by default are left alone: they say "not measured". Raises
    ConfigError naming the criterion, and the nearest known name or what is missing.
    """
    settings = config.measures
    forms = {form.name: form.measure for form in list_forms(settings.cutoffs, settings.further)}
    for name in config.judge.graded:
        scorer = SCORERS.find(name)
        if scorer is None:
            raise ConfigError(f"judge.graded: no installed package brings {name}; leave it out.")
        if scorer.of_pairs and (config.budgets or name in config.thresholds):
            where = "budgets" if config.budgets else "thresholds"
            raise ConfigError(f"{where}: {name} compares pairs of methods; leave one of them out.")
    names = [
        *forms,
        *METRICS,
        *AVERAGES,
        *(f"{s.name}.{part}" for s in SCORERS.values() if not s.of_pairs for part in s.parts),
    ]
    for criterion in config.measures.criteria:
        name = criterion.metric
        if name not in names:
            msg = f"measures.criteria: unknown name {name!r}{nearest(name, names)}"
            raise ConfigError(as_sentence(msg))
        if criterion in DEFAULT_CRITERIA:
            continue
        needs = forms[name].needs if name in forms else ()
        lacking = _lack_of_judge(name, config, samples, skip_judge)
        if lacking is None and needs and not _is_given(needs, config, samples):
            lacking = f"no question names {' or '.join(needs)}"
        if lacking is not None:
            raise ConfigError(
                f"measures.criteria: {name} would not be measured, as {lacking}; change that, or "
                "leave the criterion out."
            )


def _lack_of_judge(
    name: str, config: EvaluationConfig, samples: Sequence[Sample], skip_judge: bool
) -> str | None:
    kind = name.partition(".")[0]
    if name in ("judge_score", "combined_score"):
        kind = "quality" if config.judge.quality else "correctness"
    if kind not in (*SCORERS, *METRICS):
        return None
    if skip_judge:
        return "the judge is not asked"
    if kind == CLAIMS:
        if not config.judges_claims:
            return "judge.faithfulness is not by: claim"
        kind = FAITHFULNESS
    if kind in SCORERS:
        if kind not in config.judge.scorers:
            return f"judge.{kind} is off"
        lacks = kind == "assertions" and not any(sample.assertions for sample in samples)
        return "no question has assertions" if lacks else None
    if kind not in config.metrics:
        return f"metrics leaves {kind} out"
    if not any(judgeable(sample, (kind,), config.judges_claims) for sample in samples):
        return f"no question has an answer, which {kind} needs"
    return None


def _is_given(needs: Iterable[str], config: EvaluationConfig, samples: Sequence[Sample]) -> bool:
    return any(
        getattr(config.measures, name, None)
        or any(getattr(sample, name, None) or sample.tags.get(name) for sample in samples)
        for name in needs
    )
