"""Judges of responses, one by one or two by two, beyond the metrics: a declaration of each."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import BeforeValidator

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.judge import (
    JudgeModel,
    ReasonedForm,
    Unanswered,
    fill_prompt,
    write_prompt,
)
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.structured_output import read_choice

if TYPE_CHECKING:
    from graphrag.eval.stats.intervals import Estimate

NO_ANSWER = "Nothing to judge: no answer was given"
NO_CONTEXT = "Nothing to judge: the method does not tell its context"


@dataclass(frozen=True, slots=True)
class Material:
    """What a scorer may read of one response.

    ``context``: None where the method does not tell it; ``abstained``: whether the response is none
    to the question, as the method says; ``entity_types``: gives title -> type of the index's
    entities; ``other``: the response that this one is held against, of a scorer of pairs.
    """

    sample: Sample
    response: str
    context: str | None
    method: str
    abstained: bool
    entity_types: Callable[[], Awaitable[Mapping[str, str]]]
    other: "Material | None" = None


Grading = tuple[Mapping[str, object], Sequence[Failure | None]]
"""What a judge said of a response, JSON-ready, and what failed in it.

Where there is nothing but a ``failure``, it is no grading."""


@dataclass(frozen=True, slots=True)
class PartSummary:
    """One number of the gradings: its mean, and number -> answers that have it.

    ``good``: share of the answers with ``Scorer.good`` or more; None where that is not said.
    """

    estimate: "Estimate"
    distribution: Mapping[str, int]
    good: "Estimate | None" = None


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """What a scorer says of ``n_planned`` answers of a method; a missing grade is left out.

    ``counts``: what single gradings count, see ``Scorer.count``, added up.
    """

    n_planned: int
    parts: Mapping[str, PartSummary]
    counts: Mapping[str, int]


def _describe_parts(summary: ScoreSummary) -> dict[str, object]:
    return {
        name: {
            "n_planned": summary.n_planned,
            "estimate": part.estimate,
            "distribution": part.distribution,
        }
        for name, part in summary.parts.items()
    }


def read_parts(value: Mapping[str, object], parts: Sequence[str]) -> dict[str, float | None]:
    """Return the numbers that stand under these names."""
    numbers = {name: value.get(name) for name in parts}
    return {n: v if isinstance(v, int | float) else None for n, v in numbers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """How responses are graded, one by one, and what their grades mean.

    - ``title``: what a table of its grades is called.
    - ``parts``: the numbers that a grading has, each in ``limits``; a figure of one is called
      ``name.part``.
    - ``prompt``: what is asked; another wording makes another run. ``version`` is raised when what
      a grade means changes otherwise.
    - ``of_pairs``: it holds responses of two methods to one question against each other:
      ``Material.other`` is the second one, ``parts`` are of the first, and figures of the pair. The
      pairs are those of ``judge.pairwise``, or all.
    - ``reads``: what stands in the prompt: of question, ground_truth, answer, other (the second
      answer of a pair), context and assertions; ``n_further_tokens`` beside them, in ``n_calls``
      calls. They are for the dry run.
    - ``grade``: asks the judge's model; an answer of which it raises, or gives what is not JSON or
      not in ``limits``, has no grade. None: it is graded with the verdicts.
    - ``read``: gives the parts of what ``grade`` gave, None where one has no score; by default they
      stand in it under their names.
    - ``asks``: says whether responses to a sample are graded.
    - ``of_no_answer``: gives the grading of a failed search; None: it is left out.
    - ``columns``: the parts that a table shows, by default all. ``count``: gives name -> times of
      what is counted in a grading; ``counted``: name -> heading of a table's columns, ``note`` how
      it is to be read.
    - ``good``: the least number that is a good one, if there is one.
    - ``in_percent``: whether tables show parts as shares; ``is_binary``: whether each is 0 or 1 (a
      tie between), so that its interval is that of a share, else t's.
    - ``test``: gives p of what a table says of a method or pair, None where there is none.
    - ``words``: gives what lines say of a grading, by default a line of its numbers and its
      "reason" or "reasoning". ``describe``: gives what files say of a method.
    """

    name: str
    title: str
    parts: tuple[str, ...]
    limits: tuple[float, float]
    prompt: str
    version: int
    reads: tuple[str, ...]
    grade: Callable[[JudgeModel, Material], Awaitable[Grading]] | None
    of_pairs: bool = False
    n_further_tokens: int = 0
    n_calls: int = 1
    read: Callable[[Mapping[str, object], Sequence[str]], dict[str, float | None]] = read_parts
    asks: Callable[[Sample], bool] = lambda _: True
    of_no_answer: Callable[[Sample], Mapping[str, object]] | None = None
    columns: tuple[str, ...] = ()
    count: Callable[[Mapping[str, object]], Mapping[str, int]] = lambda _: {}
    counted: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    note: str = ""
    good: float | None = None
    in_percent: bool = False
    is_binary: bool = False
    test: Callable[[ScoreSummary], float | None] | None = None
    words: Callable[[Mapping[str, object]], Iterable[str]] | None = None
    describe: Callable[[ScoreSummary], dict[str, object]] = _describe_parts

    def numbers(self, value: Mapping[str, object]) -> dict[str, float | None]:
        """Return part -> number of a grading, None where it has no score."""
        return self.read(value, self.parts)

    def tell(self, value: Mapping[str, object]) -> Iterable[str]:
        """Return the lines that say what was given for one answer."""
        if [*value] == ["failure"]:
            failure = cast("Mapping[str, object]", value["failure"])
            return [f"{self.name}: unscored: {failure['message']}"]
        if self.words is not None:
            return self.words(value)
        numbers = ", ".join(
            f"{part.replace('_', ' ')} {'unscored' if number is None else f'{number:g}'}"
            for part, number in self.numbers(value).items()
        )
        return [f"{self.name}, {numbers}: {value.get('reason') or value.get('reasoning') or '-'}"]

    def grading(
        self, sample: Sample, has_failed: bool, value: Mapping[str, object] | None
    ) -> Mapping[str, object] | None:
        """Return what counts of a response: what was given, or what a failed search is worth.

        None of one that isn't graded any more, whatever an earlier release gave.
        """
        if not self.asks(sample):
            return None
        if has_failed and self.of_no_answer is not None:
            return self.of_no_answer(sample)
        return None if value is None or [*value] == ["failure"] else value


Field = Literal["question", "ground_truth", "answer", "context"]


def graded(
    name: str,
    instructions: str,
    fields: Sequence[Field],
    *,
    low: int = 1,
    high: int = 5,
    version: int = 1,
) -> Scorer:
    """Make a scorer that asks for one whole number from ``low`` to ``high``, one call a response.

    ``instructions`` say what is looked for and what each number means, ``fields`` what is read. A
    method that does not tell its context has no grade where that is read, an abstention none where
    the answer is.
    """
    shape = f'{{"reason": "<at most three sentences>", "score": <{low} to {high}>}}'
    prompt = write_prompt(instructions, shape, " ".join(fields), ", its keys in this order")
    grades = tuple(range(low, high + 1))

    def check(value: object) -> int:
        grade = read_choice(value, grades)
        if type(grade) is not int or grade not in grades:
            raise ValueError(f"it must be a whole number from {low} to {high}")
        return grade

    class GradedReply(ReasonedForm):
        reason: str
        score: Annotated[int, BeforeValidator(check)]

    async def grade(judge: JudgeModel, material: Material) -> Grading:
        texts: dict[str, str | None] = {
            "question": material.sample.question,
            "ground_truth": material.sample.ground_truth,
            "answer": None if material.abstained else material.response,
            "context": material.context,
        }
        if "answer" in fields and texts["answer"] is None:
            return {"score": None, "reason": NO_ANSWER}, []
        if "context" in fields and texts["context"] is None:
            return {"score": None, "reason": NO_CONTEXT}, []
        request = fill_prompt(prompt, {field: texts[field] for field in fields})
        reply = await judge.ask(request, GradedReply)
        if isinstance(reply, Unanswered):
            return {"score": None, "reason": reply.reason}, [reply.failure]
        return reply.model_dump(), []

    return Scorer(
        name=name,
        title=f"{name.capitalize()}, {low} to {high}",
        parts=("score",),
        limits=(float(low), float(high)),
        prompt=prompt,
        version=version,
        reads=tuple(fields),
        grade=grade,
    )
