"""JSON schemas of the files that runs write, made of the types that are written into them.

``python tests/support/result_schemas.py`` writes them into schemas/.
"""

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from graphrag.eval.compare.compare import MethodComparison
from graphrag.eval.compare.figures import FigureComparison
from graphrag.eval.config.file_schema import DRAFT, Schema, _FileSchema
from graphrag.eval.records import EfficiencyMetrics, Failure
from graphrag.eval.report.answer import Answer
from graphrag.eval.results.analysis import (
    Best,
    Comparison,
    EfficiencyFigures,
    RepeatAnalysis,
)
from graphrag.eval.results.curves import BudgetCurves
from graphrag.eval.results.figures import CriterionResult
from graphrag.eval.results.index_costs import Payoff
from graphrag.eval.results.runs import PinnedBaseline, StoredRun
from graphrag.eval.scorers.loss import LossRow
from graphrag.eval.scorers.measures import CombinedSummary
from graphrag.eval.scorers.pairwise import PreferenceSummary
from graphrag.eval.stats.family import FamilyFigures
from graphrag.eval.stats.intervals import Estimate
from graphrag.eval.stats.outcomes import Outcomes
from graphrag.eval.stats.paired import PairedDifference
from graphrag.eval.suite.running import PartRegression
from graphrag.eval.suite.summary import CaseResult, SuiteReport

Json = dict[str, Any]
Numbers = dict[str, float | None]
Counts = dict[str, int]
Number, Whole, Text = float | None, int | None, str | None


class _ResultSchema(_FileSchema):
    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        return _about(GenerateJsonSchema.model_schema(self, schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        return _about(GenerateJsonSchema.dataclass_schema(self, schema), schema["cls"])

    def is_instance_schema(self, schema: core_schema.IsInstanceSchema) -> Schema:
        return {"type": ["string", "null"]}  # the key of a document


def _about(schema: Schema, kind: type) -> Schema:
    return {**schema, "description": " ".join((inspect.getdoc(kind) or "").split())}


def fields_of(*types: Any, without: tuple[str, ...] = (), optional: bool = False) -> Json:
    """Return the fields of dataclasses, as they stand in a dictionary."""
    fields: Json = {}
    for kind in types:
        hints = get_type_hints(kind)
        for each in dataclasses.fields(kind):
            if each.name not in without:
                hint = hints[each.name] | None if optional else hints[each.name]
                fields[each.name] = (hint, ...)
    return fields


def made(name: str, about: str, /, **fields: Any) -> type[BaseModel]:
    """Return a model of fields, name -> type, or (type, default) of one that may be missing."""
    given = {k: v if isinstance(v, tuple) else (v, ...) for k, v in fields.items()}
    return create_model(name, __doc__=about, **given)


def maybe(kind: Any) -> tuple[Any, None]:
    """Return the type of a field that may be missing."""
    return (kind, None)


answer = made("Answer", Answer.__doc__ or "", **fields_of(Answer, without=("command",)))
metadata = made(
    "Metadata",
    "Where the results come from; what a run adds is missing from results made in Python.",
    timestamp=str,
    total_questions=int,
    **dict.fromkeys(("methods", "movies", "metrics", "models"), list[str]),
    embedded_models=Text,
    cost_usd=Number,
    setup=maybe(Json),
    judge=maybe(Json | None),
    equal_terms=maybe(Json | None),
    warnings=maybe(list[str]),
    run_id=maybe(Text),
    origin=maybe(str),
    asked=maybe(Json),
    is_complete=maybe(bool),
    n_planned=maybe(int),
    n_done=maybe(int),
    concurrency=maybe(int),
    earlier_attempts=maybe(Json),
    unfinished_answers=maybe(Json),
    n_gold=maybe(Whole),
)
efficiency = made(
    "Efficiency",
    "What a method's searches took, on average and in all; null: not counted, or no known price.",
    **dict.fromkeys(("avg_latency", "avg_llm_calls", "avg_exploring_calls"), Number),
    **dict.fromkeys(("avg_prompt_tokens", "avg_output_tokens"), Number),
    **dict.fromkeys(("avg_embedding_calls", "avg_embedding_tokens"), Number),
    **dict.fromkeys(("n_latency", "n_cut_off"), int),
    llm_calls_by_phase=Counts,
    prompt_tokens_by_phase=Counts,
    output_tokens_by_phase=Counts,
    **dict.fromkeys(("cached_prompt_tokens", "calls_reporting_cached_tokens"), Whole),
    judge_cached_prompt_tokens=Whole,
    judge_reused_replies=Whole,
    **dict.fromkeys(("calls", "tokens", "judge_calls", "judge_tokens"), Whole),
    **dict.fromkeys(("cost_usd", "judge_cost_usd"), Number),
    cost_usd_by_model=Numbers,
)
counts = made(
    "Counts",
    "Searches of a method, and by metric the verdicts there are and are not.",
    **dict.fromkeys(("n", "n_search_failed"), int),
    **dict.fromkeys(("n_scored", "n_unscored", "n_not_judged"), Counts),
)
comparison = made(
    "Comparison",
    Comparison.__doc__ or "",
    **dict.fromkeys(("a", "b", "metric", "verdict"), str),
    in_family=bool,
    corrected=Json | None,
    **fields_of(PairedDifference),
    **fields_of(FamilyFigures, optional=True),
)
measure = made("Measure", "A mean, and answers left out of it.", estimate=Estimate, n_excluded=int)
measures = made(
    "Measures",
    "What needs no judge, by name.",
    measures=dict[str, measure],
    combined=CombinedSummary,
    **dict.fromkeys(("n_without_list", "n_with_unmatched_sources"), int),
    n_without_matched_sources=int,
)
dimension = made(
    "Dimension",
    "A dimension of the rubric over many answers.",
    **dict.fromkeys(("n_planned", "n_scored"), int),
    **dict.fromkeys(("mean", "share_at_least_4"), Number),
    **dict.fromkeys(("ci", "share_at_least_4_ci"), list[float] | None),
    ci_method=str,
    distribution=Counts,
)
curves = made(
    "Curves",
    BudgetCurves.__doc__ or "",
    **fields_of(BudgetCurves),
    winner=Text,
)
summary = made(
    "Summary",
    "eval_results_summary.json. An undefined figure is null, never 0.",
    metadata=metadata,
    by_method=dict[str, Numbers],
    by_movie=dict[str, dict[str, Numbers]],
    efficiency=dict[str, efficiency],
    counts=maybe(dict[str, counts]),
    primary_metric=maybe(str),
    best=maybe(Best),
    outcomes=maybe(dict[str, dict[str, Outcomes]]),
    outcomes_by_movie=maybe(dict[str, dict[str, dict[str, Outcomes]]]),
    comparisons=maybe(list[comparison]),
    efficiency_figures=maybe(dict[str, EfficiencyFigures]),
    repeats=maybe(RepeatAnalysis | None),
    budget_curves=maybe(curves),
    answer=maybe(answer | None),
    measures=maybe(dict[str, measures]),
    loss=maybe(list[LossRow]),
    criteria=maybe(list[CriterionResult]),
    rubric=maybe(dict[str, dict[str, dimension]]),
    quality=maybe(dict[str, dict[str, Estimate]]),
    pairwise=maybe(dict[str, PreferenceSummary]),
    **dict.fromkeys(("assertions", "claims", "by_kind"), maybe(dict[str, Json])),
    index_cost=maybe(dict[str, Json | None]),
    break_even=maybe(list[Payoff]),
    further_judges_cost_usd=maybe(Number),
    further_judges=maybe(Json | None),
)
response = made(
    "Response",
    "One search and the verdicts on it: metric -> 0, 1 or null, why, and in which state.",
    response=str,
    scores=dict[str, Whole],
    reasons=dict[str, str],
    states=dict[str, str],
    efficiency=EfficiencyMetrics,
    failure=Failure | None,
    cut_replies=int,
    cached_prompt_tokens=Whole,
    repeats=maybe(dict[str, list[Whole]]),
    **dict.fromkeys(("rubric", "quality", "assertions", "claims"), maybe(Json)),
)
detailed = made(
    "Detailed",
    "eval_results_detailed.json: every response, by question.",
    metadata=metadata,
    results=list[
        made(
            "Question",
            "A question, and method -> response; of further trials below trials.",
            **dict.fromkeys(("id", "imdb_key", "question", "ground_truth"), str),
            methods=dict[str, response],
            trials=maybe(dict[str, list[response]]),
        )
    ],
)
averages = ("avg_hit_rate", "avg_mrr", "avg_judge_score", "avg_combined_score")
of_question = ("hit_rate", "mrr", "judge_score", "combined_score", "num_tokens")
evaluation = made(
    "Evaluation",
    "evaluation.json, or of several methods evaluation_METHOD.json.",
    timestamp=str,
    num_questions=int,
    summary=made(
        "Averages",
        "Means over the questions for which a figure is defined.",
        **dict.fromkeys(
            (*averages, "best_combined_score", "avg_num_tokens", "total_tokens"), Number
        ),
    ),
    metadata=made(
        "About",
        "Which questions, which search, which judge.",
        **dict.fromkeys(("ground_truth_file", "search_mode", "judge_score"), str),
        **dict.fromkeys(("judge_model", "embedded_models", "run_id"), Text),
        is_complete=bool | None,
    ),
    results=list[made("Row", "One question.", question=str, **dict.fromkeys(of_question, Number)),],
)
case = made(
    "Case",
    CaseResult.__doc__ or "",
    **dict.fromkeys(("id", "name", "method", "status", "reason", "output"), str),
    score=Number,
    parts=Numbers,
    details=Json,
    failure=Failure | None,
    efficiency=EfficiencyMetrics,
)
suites = made(
    "Suites",
    "suite_results.json.",
    timestamp=str,
    **dict.fromkeys(("run_id", "embedded_models"), Text),
    suites=list[
        made(
            "Suite",
            SuiteReport.__doc__ or "",
            **fields_of(SuiteReport, without=("n_passed", "n_total", "results")),
            **dict.fromkeys(("passed", "total"), int),
            cases=maybe(list[case]),
        )
    ],
    regressions=maybe(list[PartRegression]),
)
compared = made(
    "Compared",
    "What compare --json writes.",
    **dict.fromkeys(("outcome", "new", "baseline"), str),
    answer=answer,
    embedded_models=dict[str, Text],
    items=list[MethodComparison],
    figures=list[FigureComparison],
    break_even=list[Payoff],
    warnings=list[str],
)
history = made("Run", StoredRun.__doc__ or "", **fields_of(StoredRun))

MODELS = {
    "eval_results_summary": summary,
    "eval_results_detailed": detailed,
    "evaluation": evaluation,
    "suite_results": suites,
    "baseline": PinnedBaseline,
    "compare": compared,
}


def result_schemas() -> dict[str, Schema]:
    """Return name -> schema; that of show --json is of a list."""
    every = {name: _schema_of(model) for name, model in MODELS.items()}
    run = _schema_of(history)
    about = "What show --json prints: the runs, the newest first."
    every["history"] = {"$schema": DRAFT, "description": about, "type": "array", "items": run}
    every["history"]["$defs"] = run.pop("$defs", {})
    del run["$schema"]
    return every


def _schema_of(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema(schema_generator=_ResultSchema, mode="serialization")
    return {"$schema": DRAFT, **schema}


if __name__ == "__main__":
    folder = Path(__file__).parents[2] / "schemas"
    for name, schema in result_schemas().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")
