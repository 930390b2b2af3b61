"""Defines :class:`Scorer`, which declares a further judge, and the records of grades.

A scorer grades single responses, or compares two. The built-in ones are declared in files of their
own, such as rubric.py, and listed in scorer_registry.py. :func:`graded` makes a simple one.
"""

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
NO_CONTEXT = "Nothing to judge: the method does not report its context"


@dataclass(frozen=True, slots=True)
class Material:
    """The data that a scorer may read about one response.

    - ``context``: None if the method does not report it.
    - ``abstained``: whether the method declined to answer the question.
    - ``entity_types``: reads title -> type of the index's entities.
    - ``other``: for a scorer of pairs, the response that this one is compared with.
    """

    sample: Sample
    response: str
    context: str | None
    method: str
    abstained: bool
    entity_types: Callable[[], Awaitable[Mapping[str, str]]]
    other: "Material | None" = None


Grading = tuple[Mapping[str, object], Sequence[Failure | None]]
"""A judge's JSON-ready grading of a response, and the failures in it.

A mapping with nothing but ``failure`` is not a grading."""


@dataclass(frozen=True, slots=True)
class PartSummary:
    """The mean and distribution of one number of the gradings.

    ``distribution``: number -> answers that have it. ``good``: share of the answers with at least
    ``Scorer.good``; None if the scorer sets no such number.
    """

    estimate: "Estimate"
    distribution: Mapping[str, int]
    good: "Estimate | None" = None


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """The gradings of ``n_planned`` answers of one method; missing gradings are left out.

    ``counts`` adds up what ``Scorer.count`` counts in each grading.
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
    """Return part -> its number in a grading; None if it is missing or not a number."""
    numbers = {name: value.get(name) for name in parts}
    return {n: v if isinstance(v, int | float) else None for n, v in numbers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """Declares a judge: what it reads, how it grades responses, and what its grades mean.

    - ``title``: heading of the table of its grades.
    - ``parts``: names of the numbers in a grading, each within ``limits``. Results call such a
      number ``name.part``.
    - ``prompt``: the prompt; another wording makes another run. ``version``: to be raised if the
      meaning of a grade changes otherwise.
    - ``of_pairs``: whether it compares the responses of two methods to one question.
      ``Material.other`` is then the second response; ``parts`` are about the first response, and
      about the pair. The pairs are those of ``judge.pairwise``, or all.
    - ``reads``: what the prompt contains: question, ground_truth, answer, other (the second answer
      of a pair), context, assertions. ``n_further_tokens`` come on top, in ``n_calls`` calls.
      The dry run uses all three.
    - ``grade``: asks the judge's model. An answer has no grade if this raises, or returns something
      that is not JSON or not within ``limits``. None: the answer is graded with the verdicts.
    - ``read``: returns part -> number of a grading, None without a score. By default it looks up
      the parts by their names.
    - ``asks``: returns whether responses to a sample are graded.
    - ``of_no_answer``: returns the grading of a failed search. None: it is left out.
    - ``columns``: the parts that a table shows, by default all. ``count``: returns name -> how
      often it occurs in a grading. ``counted``: name -> heading of its column. ``note``: how to
      read the table.
    - ``good``: the least number that counts as good, if there is one.
    - ``in_percent``: whether tables show parts as shares. ``is_binary``: whether each part is 0 or
      1, or between for a tie; its interval is then that of a share, otherwise a t interval.
    - ``test``: returns p for the table's row of a method or pair; None if there is none.
    - ``words``: returns the lines that describe a grading, by default one line with its numbers and
      its "reason" or "reasoning". ``describe``: returns a method's entry in files.

    Examples
    --------
    >>> Scorer(name="sources", title="Citations, 0 to 5", parts=("cited",), limits=(0.0, 5.0),
    ...        prompt="", version=1, reads=("answer",), grade=count_sources).name
    'sources'
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
        """Return part -> its number in a grading; None for a part without a score."""
        return self.read(value, self.parts)

    def lines(self, value: Mapping[str, object]) -> Iterable[str]:
        """Return the lines that describe the grading of one answer."""
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
        """Return the grading of a response that counts, or that of a failed search.

        None if there is none, or if responses to the sample are not graded, whatever the store
        keeps.
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
    """Make a scorer that asks for a whole number from ``low`` to ``high``, one call per response.

    ``instructions`` say what to look for and what each number means; ``fields`` name what the judge
    reads. If it reads the context, a response of a method that does not report it has no grade. If
    it reads the answer, an abstention has none.

    Examples
    --------
    >>> graded(name="politeness", instructions="5: kind throughout. 3: plain. 1: rude.",
    ...        fields=("question", "answer"), low=1, high=5).limits
    (1.0, 5.0)
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
