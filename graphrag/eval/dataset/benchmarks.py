"""Reads the formats of published benchmarks and of other tools' test sets into common entries.

A format is one or two small models of its rows; docs/data.md says where each is described.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, cast

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)

from graphrag.config.models.strict_section import explain_first
from graphrag.eval.dataset.dataset_reader import DECLINED, Assertion
from graphrag.eval.dataset.files import ROWS_UNDER, read_rows, read_values
from graphrag.eval.errors import DatasetError
from graphrag.text.accepted_answers import join_answers

NO_DOCUMENT = "Supporting passages or articles that the files do not have"
NOT_IN_DOCUMENT = "Supporting sentences, quotes or answers that their passage does not contain"
_NOT_READ = "Rows that can't be read, left out"
_LOCAL_ONLY = "Questions that only their own passages do not answer, left out"
_NO_VARIABLE = "Tests without a variable question, query, input or prompt, left out"
_NO_COUNTERPART = "Assertions that can't be carried over, left out"
Row = dict[str, JsonValue]
Problem = tuple[str, str]
"""The problem, and the place or text that has it."""


class Document(NamedTuple):
    """A passage or an article; the title may be ""."""

    title: str
    text: str


class Support(NamedTuple):
    """Where an answer is: a document, or its title, and a quote of it, or ""."""

    document: Document | str
    quote: str = ""


class Entry(NamedTuple):
    """The content of a row: documents, a question as a dataset's row, and where its answer is.

    ``row`` is None without a question. ``problems`` are to be noted for the user.
    """

    documents: Sequence[Document]
    row: Row | None = None
    supports: Sequence[Support] = ()
    problems: Sequence[Problem] = ()


def _from_text(value: object) -> object:
    """Read a list or an object from a text, in JSON or as Python writes it into tables."""
    for read in (json.loads, ast.literal_eval):
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                value = read(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return value


def _as_list(value: object) -> object:
    """Read one text, several, SQuAD's [{text: ...}, ...] or BenchmarkQED's {statement: ...}."""
    texts: list[object] = []
    for item in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            within = cast("Mapping[str, object]", item)
            item = within.get("text", within.get("statement"))
        texts += [] if item is None else [item]
    return texts


def _pairs(value: object) -> object:
    """Read [[title, rest], ...], or the same from Parquet's columns {title: [...], ...}."""
    value = _from_text(value)
    if not isinstance(value, dict):
        return value
    columns = cast("Mapping[str, list[object]]", value)
    try:
        rest = columns["sent_id"] if "sent_id" in columns else columns["sentences"]
        return list(zip(columns["title"], rest, strict=True))
    except (KeyError, TypeError) as error:
        raise ValueError("it has no lists of titles and sentences") from error


Texts = Annotated[list[str], BeforeValidator(_as_list)]
TextsOfTable = Annotated[list[str], BeforeValidator(lambda value: _as_list(_from_text(value)))]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)


class _Row(_Part):
    keys: ClassVar[tuple[set[str], ...]] = ()
    """Sets of keys; a row that has all keys of one set may be of this model."""

    def entries(self) -> Iterable[Entry]:
        raise NotImplementedError


class _Document(_Row):
    keys = ({"title", "text"}, {"title", "body"}, {"corpus_name", "context"})
    title: str = Field(validation_alias=AliasChoices("title", "corpus_name"))
    text: str = Field(validation_alias=AliasChoices("text", "body", "context"))
    source: str | None = None
    published_at: str | None = None

    def entries(self) -> Iterable[Entry]:
        # MultiHop-RAG's questions ask for what an outlet reported, and when.
        origin = ", ".join(filter(None, (self.source, self.published_at)))
        yield Entry([Document(self.title, f"{origin}\n\n{self.text}" if origin else self.text)])


class _Question(_Row):
    id: str | None = Field(None, validation_alias=AliasChoices("_id", "id", "question_id"))
    question: str = Field(
        validation_alias=AliasChoices("question", "query", "user_input", "question_text")
    )
    # Where a row has a reference as well, its `answer` is a system's response.
    answers: Texts = Field(
        [], validation_alias=AliasChoices("reference", "ground_truth", "answer", "answers")
    )
    answer_aliases: Texts = []
    kind: str | None = Field(
        None, validation_alias=AliasChoices("type", "question_type", "synthesizer_name")
    )
    level: str | None = None

    def entry(
        self,
        documents: Sequence[Document] = (),
        supports: Sequence[Support] = (),
        problems: Sequence[Problem] = (),
        **fields: JsonValue,
    ) -> Entry:
        answer = join_answers((*self.answers, *self.answer_aliases))
        row: Row = {"id": self.id, "question": self.question, "answer": answer}
        row |= {"kind": self.kind, "level": self.level, **fields}
        return Entry(
            documents=documents, row=_without_blanks(row), supports=supports, problems=problems
        )


def _without_blanks(row: Row) -> Row:
    return {name: value for name, value in row.items() if value or value is False}


class _HotpotQA(_Question):
    keys = ({"question", "context", "supporting_facts"},)
    supporting_facts: Annotated[list[tuple[str, int]], BeforeValidator(_pairs)]
    context: Annotated[list[tuple[str, list[str]]], BeforeValidator(_pairs)]

    def entries(self) -> Iterable[Entry]:
        sentences = {title: [text.strip() for text in texts] for title, texts in self.context}
        documents = {t: Document(t, " ".join(filter(None, s))) for t, s in sentences.items()}
        supports: list[Support] = []
        problems: list[Problem] = []
        for title, place in self.supporting_facts:
            texts = sentences.get(title, [])
            quote = texts[place] if 0 <= place < len(texts) else ""
            if texts and not quote:
                problems.append((NOT_IN_DOCUMENT, f"sentence {place} of {title!r}"))
            supports.append(Support(documents.get(title, title), quote))
        hops = len({title for title, _ in self.supporting_facts})
        yield self.entry([*documents.values()], supports, problems, hops=hops)


class _TwoWiki(_HotpotQA):
    keys = ({"question", "context", "supporting_facts", "evidences"},)


class _Paragraph(_Part):
    title: str = ""
    text: str = Field(validation_alias=AliasChoices("paragraph_text", "text"))
    is_supporting: bool = False


class _MuSiQue(_Question):
    keys = ({"question", "paragraphs"},)
    answerable: bool = True
    paragraphs: list[_Paragraph]
    question_decomposition: list[JsonValue] = []

    def entries(self) -> Iterable[Entry]:
        if not self.answerable:  # here all passages are one corpus, which may answer it
            yield Entry((), problems=[(_LOCAL_ONLY, self.question)])
            return
        documents = [Document(paragraph.title, paragraph.text) for paragraph in self.paragraphs]
        pairs = zip(documents, self.paragraphs, strict=True)
        supports = [Support(doc, doc.text) for doc, p in pairs if p.is_supporting]
        kind, has_kind, _ = (self.id or "").partition("__")  # 2hop__..., 3hop1__...
        hops = len(self.question_decomposition) or len(supports)
        yield self.entry(documents, supports, hops=hops, kind=kind if has_kind else None)


class _Fact(_Part):
    title: str
    fact: str


class _MultiHop(_Question):
    keys = ({"query", "evidence_list"},)
    evidence_list: list[_Fact]

    def entries(self) -> Iterable[Entry]:
        supports = [Support(evidence.title, evidence.fact) for evidence in self.evidence_list]
        hops = len({evidence.title for evidence in self.evidence_list})
        yield self.entry((), supports, hops=hops, answerable=self.kind != "null_query")


class _GraphRAGBench(_Question):
    # Its repository has a version of its questions without the evidence.
    keys = ({"question", "source", "evidence"}, {"question", "source", "question_type"})
    source: str
    evidence: TextsOfTable = []

    def entries(self) -> Iterable[Entry]:
        yield self.entry((), [Support(self.source, quote) for quote in self.evidence])


class _UltraDomain(_Question):
    keys = ({"input", "context", "answers"},)
    question: str = Field(validation_alias="input")
    title: str = Field("", validation_alias=AliasPath("meta", "title"))
    context: str  # a book, which its other questions repeat
    kind: str | None = Field(None, validation_alias="label")

    def entries(self) -> Iterable[Entry]:
        yield self.entry([Document(self.title, self.context)])


class _BenchmarkQED(_Question):
    keys = ({"question_text"}, {"id", "text"})
    question: str = Field(validation_alias=AliasChoices("question_text", "text"))
    # Its files of answers have this field too, for a system's response.
    answers: Texts = Field([], validation_alias="reference")
    assertions: Texts = Field(
        [], validation_alias=AliasChoices("assertions", AliasPath("attributes", "assertions"))
    )

    def entries(self) -> Iterable[Entry]:
        yield self.entry(assertions=[Assertion(text=t).model_dump() for t in self.assertions])


class _SquadQuestion(_Question):
    is_impossible: bool = False

    def entry_from(self, title: str, text: str) -> Entry:
        passage = Document(title.replace("_", " "), text)
        if self.is_impossible or ("answers" in self.model_fields_set and not self.answers):
            return self.entry([passage], answer=DECLINED, answerable=False)
        strange = [(NOT_IN_DOCUMENT, repr(a[:60])) for a in self.answers if a not in text]
        return self.entry([passage], [Support(passage, text)], strange)


class _SquadParagraph(_Part):
    context: str
    qas: list[_SquadQuestion]


class _SquadArticle(_Row):
    keys = ({"title", "paragraphs"},)
    title: str
    paragraphs: list[_SquadParagraph]

    def entries(self) -> Iterable[Entry]:
        return [qa.entry_from(self.title, p.context) for p in self.paragraphs for qa in p.qas]


class _Ragas(_Question):
    keys = ({"user_input"}, {"question", "ground_truth"})
    reference_contexts: TextsOfTable = []
    retrieved_contexts: TextsOfTable = Field(
        [], validation_alias=AliasChoices("retrieved_contexts", "contexts")
    )

    def entries(self) -> Iterable[Entry]:
        # Its synthesizers write "<1-hop>" and a blank line before the contexts of several hops.
        gold = [Document("", re.sub(r"^<\d+-hop>\s*", "", t)) for t in self.reference_contexts]
        documents = [*gold, *(Document("", text) for text in self.retrieved_contexts)]
        yield self.entry(documents, [Support(doc, doc.text) for doc in gold], hops=len(gold))


_ANSWERS = ("equals", "similar", "factuality", "model-graded-factuality", "context-recall")
_STATEMENTS = ("llm-rubric", "model-graded-closedqa", "g-eval")
_WORDS = ("contains", "icontains", "contains-all", "icontains-all", "not-contains", "not-icontains")


class _Assert(_Part):
    type: str
    value: Texts = []


class _Promptfoo(_Row):
    keys = ({"vars"},)
    vars: dict[str, JsonValue]
    asserted: list[_Assert] = Field([], validation_alias="assert")
    metadata: Row = {}

    def entries(self) -> Iterable[Entry]:
        answers: list[str] = []
        assertions: list[JsonValue] = []
        problems: list[Problem] = []
        for assertion in self.asserted:
            # The text of a file or a template is not known here.
            is_literal = not any("file://" in value or "{{" in value for value in assertion.value)
            if is_literal and assertion.type in _ANSWERS:
                answers += assertion.value
            elif is_literal and assertion.type in (*_STATEMENTS, *_WORDS):
                must = "not_say" if assertion.type.startswith("not-") else "say"
                form = "{}" if assertion.type in _STATEMENTS else "It says “{}”."
                texts = [form.replace("{}", value) for value in assertion.value]
                assertions += [Assertion(text=text, must=must).model_dump() for text in texts]
            else:
                problems.append((_NO_COUNTERPART, assertion.type))
        texts = cast("list[object]", _as_list(self.vars.get("context")))
        documents = [Document("", text) for text in texts if isinstance(text, str)]
        variables = [self.vars.get(name) for name in ("question", "query", "input", "prompt")]
        row = _without_blanks(
            {
                **self.metadata,
                "question": next((v for v in variables if isinstance(v, str)), None),
                "answer": join_answers(answers),
                "assertions": assertions,
            }
        )
        if "question" not in row:
            problems, row = [(_NO_VARIABLE, ", ".join(self.vars))], None
        yield Entry(
            documents=documents,
            row=row,
            supports=[Support(doc, doc.text) for doc in documents],
            problems=problems,
        )


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the model of its rows, where it comes from, and its license.

    ``license`` is the one under which its authors publish it; None if each user makes their own
    data. ``by_passage``: whether a question's sources are full passages; otherwise they are quotes
    from its articles.
    """

    row: type[_Row]
    source: str
    license: str | None = None
    by_passage: bool = True

    def model(self, row: Mapping[str, object]) -> tuple[type[_Row], int]:
        """Return the model that fits a row best, and the number of keys that show it."""
        models = (_Document, self.row)
        fits = [(m, len(keys)) for m in models for keys in m.keys if keys <= row.keys()]
        return max(fits, key=lambda fit: fit[1], default=(self.row, 0))


_GITHUB = "https://github.com"
FORMATS: Mapping[str, Format] = {
    "hotpotqa": Format(row=_HotpotQA, source="https://hotpotqa.github.io", license="CC BY-SA 4.0"),
    "2wikimultihopqa": Format(
        row=_TwoWiki, source=f"{_GITHUB}/Alab-NII/2wikimultihop", license="Apache-2.0"
    ),
    "musique": Format(row=_MuSiQue, source=f"{_GITHUB}/StonyBrookNLP/musique", license="CC BY 4.0"),
    "multihop-rag": Format(
        row=_MultiHop,
        source=f"{_GITHUB}/yixuantt/MultiHop-RAG",
        license="ODC-BY 1.0",
        by_passage=False,
    ),
    "graphrag-bench": Format(
        row=_GraphRAGBench,
        source=f"{_GITHUB}/GraphRAG-Bench/GraphRAG-Benchmark",
        license="MIT",
        by_passage=False,
    ),
    "ultradomain": Format(
        row=_UltraDomain,
        source="https://huggingface.co/datasets/TommyChien/UltraDomain",
        license="Apache-2.0",
        by_passage=False,
    ),
    "benchmark-qed": Format(row=_BenchmarkQED, source=f"{_GITHUB}/microsoft/benchmark-qed"),
    "squad": Format(row=_SquadArticle, source="https://rajpurkar.github.io/SQuAD-explorer/"),
    "ragas": Format(row=_Ragas, source="https://docs.ragas.io"),
    "promptfoo": Format(row=_Promptfoo, source="https://www.promptfoo.dev/docs/"),
}


@dataclass(slots=True)
class Reading:
    """Notes about files that were read.

    ``problems``: problem -> its places. ``version``: the version that a file states for itself.
    """

    problems: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    warnings: list[str] = field(default_factory=list[str])
    version: str | None = None

    def note(self, problem: str, where: str) -> None:
        """Keep one place of a problem."""
        self.problems.setdefault(problem, []).append(where)


def read_entries(name: str, files: Iterable[Path], reading: Reading) -> Iterator[tuple[str, Entry]]:
    """Yield the place and the content of each row; ``reading`` notes rows that can't be read.

    ``name`` is the name of the format. Raises DatasetError if a file has another format, and says
    which one it looks like.
    """
    for file in files:
        rows = _rows(file, reading)
        if not rows:
            raise DatasetError(f"{file} has no rows.")
        _check_format(name, rows[0], file)
        for number, row in enumerate(rows, 1):
            where = f"{file.name}, row {number}"
            try:
                entries = list(FORMATS[name].model(row)[0].model_validate(row).entries())
            except ValidationError as error:
                reading.note(_NOT_READ, f"{where}: {explain_first(error)}")
                continue
            yield from ((where, entry) for entry in entries)


def _rows(file: Path, reading: Reading) -> list[Mapping[str, object]]:
    if file.suffix.lower() in (".json", ".yaml", ".yml"):
        value, warnings = read_values(file)
        if isinstance(value, dict):
            value = _unwrap(cast("dict[str, object]", value), file, reading)
    else:
        value, warnings, _ = read_rows(file, {})
    reading.warnings += warnings
    if not isinstance(value, list):
        raise DatasetError(f"{file} has neither rows nor an object with rows.")
    # BenchmarkQED's questions may be texts alone.
    return [
        cast("Mapping[str, object]", row) if isinstance(row, dict) else {"question_text": row}
        for row in cast("list[object]", value)
    ]


def _unwrap(value: dict[str, object], file: Path, reading: Reading) -> object:
    """Return the rows of an object; an object that is itself a row becomes a list with it."""
    if isinstance(tests := value.get("tests"), str):
        raise DatasetError(f"{file} has its tests in {tests}; import that file.")
    for under in (*ROWS_UNDER, "tests"):
        if isinstance(value.get(under), list):
            reading.version = str(value["version"]) if "version" in value else reading.version
            return value[under]
    return [value]


def _check_format(name: str, row: Mapping[str, object], file: Path) -> None:
    matches = {other: fmt.model(row)[1] for other, fmt in FORMATS.items()}
    best = max(matches.values())
    if not best or matches[name] < best:
        likely = " or ".join(other for other, n in matches.items() if n == best)
        guess = f"it looks like {likely}" if best else f"formats: {', '.join(FORMATS)}"
        fields = ", ".join(map(repr, list(row)[:8])) or "none"
        raise DatasetError(f"{file} is not {name} (fields of its first row: {fields}); {guess}.")
