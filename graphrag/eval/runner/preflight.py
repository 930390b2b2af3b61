"""Checks a run before its first call: refuses what can't work, and warns of weak figures."""

import asyncio
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graphrag.config.models.tog_search_config import PPRSearchConfig, ToGSearchConfig
from graphrag.config.project_settings import UnusedSetting, read_settings, unknown_settings
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError, StoreError
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.quote_matching import Evidence, phrase_key
from graphrag.eval.runner.custom_methods import MethodSet
from graphrag.eval.runner.indexes import list_model_warnings, read_index_facts
from graphrag.eval.runner.judging import FAITHFULNESS, list_judge_name_warnings
from graphrag.eval.store.index_costs import read_index_cost
from graphrag.eval.types.metric_definitions import JUDGED_METRICS
from graphrag.installation import STAND_IN, has_no_wordllama
from graphrag.query.client.model_prices import input_limit, is_hashed, is_offline, model_price
from graphrag.query.client.structured_output import own_bound
from graphrag.query.index.header import IndexHeader, model_name
from graphrag.query.methods import BUDGET, GRAPH_METHODS, count_passages, has_budget
from graphrag.text.cli_hints import eval_line_here
from graphrag.text.message_phrases import counted, join_names, shorten

_BYTES_A_UNIT = 200_000
_BYTES_A_RUN = 50_000_000
_FAMILIES = {
    "gpt": ("gpt", "chatgpt", "o1", "o3", "o4"),
    "gemini": ("gemini", "gemma"),
    "mistral": ("mistral", "mixtral", "ministral", "codestral", "magistral"),
    "qwen": ("qwen", "qwq"),
    "llama": ("llama", "meta-llama", "codellama"),
}


def check_output(folder: Path, n_units: int) -> None:
    """Raise StoreError if an output folder can't be written or has too little space left."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
    except OSError as error:
        msg = f"{folder} can't be written ({error.strerror}); choose another with --output."
        raise StoreError(msg) from error
    needed = _BYTES_A_RUN + n_units * _BYTES_A_UNIT
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder} has {free // 1_000_000} MB left and the run may need "
            f"{needed // 1_000_000} MB; free some space or choose another with --output."
        )


def check_prices(models: Iterable[str], instead: str = "") -> None:
    """Raise ConfigError, for a cost limit, if the price of a model is unknown.

    ``instead``: the flag that bounds the cost without a price.
    """
    bound = f", and use {instead} to bound the cost" if instead else ""
    for model in models:
        if model_price(model) is None:
            raise ConfigError(
                f"--max-cost needs the price of {model}, which litellm's price map does not "
                f"have; leave --max-cost out{bound}."
            )


def list_judge_warnings(judge: str, answering: Iterable[str]) -> list[str]:
    """Return a warning if the judge is an embedded model, or related to the models it grades.

    ``judge``: ``provider/model``. ``answering``: the completion models that wrote the responses.
    """
    if is_offline(judge):
        return [
            f"the judge is {judge}, which compares words by fixed rules; its verdicts say nothing "
            "about what a language model or a person would find"
        ]
    family = _family(judge)
    return [
        f"the judge {judge} is of the same family as {model}, whose responses it grades; judges "
        "favor their own kind, so check it against human labels after the run: "
        f"{eval_line_here('view', '--labels', 'latest')}"
        for model in sorted(set(answering))
        if _family(model) == family
    ]


def list_graph_warnings(answering: Iterable[str], built: "Mapping[str, IndexHeader]") -> list[str]:
    """Return a warning if language models read graphs that embedded models made.

    The build's record names the model that made a graph, or else the settings. ``answering``:
    the completion models that write the responses, as ``provider/model``.
    """
    keys = [key for key, header in built.items() if any(map(is_offline, _graph_makers(header)))]
    if not keys or all(map(is_offline, answering)):
        return []
    return [
        f"an embedded model makes the graph of {join_names(keys)} by fixed rules; methods that "
        "read it may score otherwise on a graph that a language model makes"
    ]


def _graph_makers(header: IndexHeader) -> list[str]:
    """Return the models that extracted an index's graph, as ``provider/model``."""
    folder, fingerprint = header.config.output_storage.base_dir, header.fingerprint
    if folder and fingerprint is not None:
        cost = read_index_cost(Path(folder), fingerprint, None)
        if cost is not None and cost.steps:
            return [step.model for step in cost.steps if step.workflow == "extract_graph"]
    return [str(read_index_facts(header).get("extraction model", ""))]


def _family(model: str) -> str:
    # Some services put the maker and a dot before the name; a version also has a dot.
    name = re.split(r"\.(?=[a-z])", model.rpartition("/")[2].casefold())[-1]
    for family, names in _FAMILIES.items():
        if any(name.startswith(prefix) for prefix in names):
            return family
    return re.split(r"[-:_\d]", name)[0] or name


_FILES = {"text": r".*\.txt$", **{kind: rf".*\.{kind}$" for kind in ("csv", "json", "jsonl")}}
"""Kind of input read as text -> pattern of its files, unless the settings have another."""


async def list_input_warnings(key: str, root: Path) -> list[str]:
    """Return warnings about input files that an index will lack, before it is built.

    The release leaves out a file in another encoding than expected, and makes no text unit of a
    file without text. Only text files on this machine are checked. Raises SettingsError if the
    settings can't be read. Raises ConfigError if there is no file, or none with text, which the
    release would report less clearly.
    """
    config = read_settings(root)
    kind, encoding = str(config.input.type), config.input.encoding or "utf-8"
    if str(config.input_storage.type) != "file" or kind not in _FILES:
        return []
    folder = config.input_storage.base_dir
    pattern = config.input.file_pattern or _FILES[kind]
    try:
        faults = await asyncio.to_thread(_read_input, Path(str(folder)), pattern, encoding)
    except LookupError:  # Python does not know the encoding: the release reports it
        return []
    if not faults:
        raise ConfigError(
            f"Index {key} can't be built: no file in {folder} matches {pattern}; put the "
            "texts there, or name others in input.file_pattern or input_storage.base_dir"
        )
    empty = [name for name, fault in faults.items() if fault == ""]
    if len(empty) == len(faults):
        verb = "has" if len(faults) == 1 else "have"
        msg = f"Index {key} can't be built: {counted(len(faults), 'file')} in {folder} {verb}"
        raise ConfigError(f"{msg} no text")
    unreadable = [name for name, fault in faults.items() if fault]
    warnings: list[str] = []
    if unreadable:
        name = unreadable[0]
        warnings.append(
            f"{key}: {_as_subject(unreadable, 'is', 'are')} not {encoding} ({faults[name]} of "
            f"{name}) and left out of the index; save as {encoding}, or name the encoding in "
            "input.encoding"
        )
    if empty:
        files = _as_subject(empty, "has", "have")
        warnings.append(f"{key}: {files} no text and can not be found by any search")
    return warnings


def _read_input(folder: Path, pattern: str, encoding: str) -> dict[str, str | None]:
    """Return file -> why it can't be read, "" if it is empty, else None.

    Raises LookupError if the encoding is unknown.
    """
    faults: dict[str, str | None] = {}
    for path in sorted(folder.rglob("*")):
        if not re.search(pattern, str(path)) or not path.is_file():
            continue
        name, data = path.relative_to(folder).as_posix(), path.read_bytes()
        try:
            faults[name] = None if data.decode(encoding).strip() else ""
        except UnicodeDecodeError as error:
            faults[name] = f"byte {data[error.start]:#04x} at {error.start:,}"
    return faults


def _as_subject(names: Sequence[str], one: str, many: str) -> str:
    if len(names) == 1:
        return f"the input file {names[0]} {one}"
    return f"{len(names)} input files, such as {names[0]}, {many}"


_MOST = 0.5


async def list_budget_warnings(
    methods: MethodSet, headers: Mapping[str, IndexHeader]
) -> tuple[list[str], list[str]]:
    """Return warnings about methods with room for too much of an index's text, and for too little.

    Too much is half of the text or more; too little, less than a text unit. Tokens are those that
    the index counted in its text units, overlaps included; without counts there are no warnings.
    Global and DRIFT search show reports, and are left out. A line names all indexes that it
    concerns.
    """
    roomy = defaultdict[tuple[str, ...], dict[str, tuple[int, bool]]](dict)
    cramped = defaultdict[tuple[str, ...], dict[str, tuple[int, int, int]]](dict)
    for key, header in headers.items():
        counts = (await IndexView.open(header, ("text_units",))).token_counts()
        total = sum(counts or ())
        if counts is None or not total:
            continue
        users = [name for name, other in methods.pairs(headers) if other is header]
        rooms = [room for n in users if (room := _room(n, methods, header, counts)) is not None]
        if small := {room.label: room.tokens for room in rooms if room.tokens < room.least}:
            n_larger = sum(count > max(small.values()) for count in counts)
            cramped[tuple(small)][key] = n_larger, len(counts), max(counts)
        if large := {room.label: room.tokens for room in rooms if room.tokens >= _MOST * total}:
            roomy[tuple(large)][key] = total, min(large.values()) >= total
    much, little = list[str](), list[str]()
    for names, indexes in roomy.items():
        totals = [total for total, _ in indexes.values()]
        size = " to ".join(dict.fromkeys(f"{n:,}" for n in (min(totals), max(totals))))
        part = "all" if all(is_all for _, is_all in indexes.values()) else "half or more"
        much.append(
            f"the context of {join_names(names)} {'has' if len(names) == 1 else 'have'} {part} "
            f"of the text of {_name_indexes(list(indexes))} ({size} tokens in text units): "
            "this comparison says little about retrieval"
        )
    for names, units in cramped.items():
        n_larger, n, largest = zip(*units.values(), strict=True)
        little.append(
            f"{sum(n_larger):,} of {sum(n):,} text units of {_name_indexes(list(units))} (the "
            f"largest has {max(largest):,} tokens) are larger than the room for text of "
            f"{join_names(names)}, and can't be shown; raise max_context_tokens, or index with a "
            "smaller chunking.size"
        )
    return much, little


def list_judge_limit_warnings(
    config: EvaluationConfig, judge: str, methods: MethodSet, headers: Mapping[str, IndexHeader]
) -> list[str]:
    """Return a warning if a context and a bounded answer may be longer than the judge can read.

    The judge's limit comes from litellm's map; for a model that is not in it there is no warning.
    """
    limit = None if is_offline(judge) else input_limit(judge)
    metrics = [name for name in config.metrics if JUDGED_METRICS[name].reads_context]
    if limit is None or not metrics:
        return []
    needs: dict[str, int] = {}
    for name, header in methods.pairs(headers):
        budget = _budget(name, methods, header)
        if budget is not None:
            answer = answer_bound(name, methods, header, config.max_output_tokens)
            needs[name] = max(needs.get(name, 0), budget + answer)
    short = {name: need for name, need in needs.items() if need >= limit}
    if not short:
        return []
    listed = join_names([f"{name} ({need:,})" for name, need in short.items()])
    return [
        f"the judge {judge} reads {limit:,} tokens, and the context and answer of {listed} may "
        f"take as many or more; verdicts on {join_names(metrics)} may fail: lower "
        "max_context_tokens, or choose another judge.model"
    ]


def _list_replaced(config: EvaluationConfig) -> list[str]:
    """Return lines about settings of variants that version 1.0.0 had and nothing reads now."""
    sections = {"ppr": PPRSearchConfig, "tog": ToGSearchConfig}
    return [
        f"{name}: {UnusedSetting(section='', key=key, instead=instead, has_gone=True)}"
        for name, variant in config.variants.items()
        if name in config.methods and variant.method in sections
        for key, instead in sections[variant.method].replaced.items()
        if key in variant.changes
    ]


async def list_warnings(
    config: EvaluationConfig,
    samples: Sequence[Sample],
    methods: MethodSet,
    headers: Mapping[str, IndexHeader],
    built: Mapping[str, IndexHeader],
    judge: str | None,
) -> tuple[list[str], list[str]]:
    """Return all warnings about a run's figures, and those on contexts that have most of a text.

    The second list is a part of the first. ``headers``: of all indexes that are asked; ``built``:
    of those that are built; ``judge``: the model that gives verdicts, or None.
    """
    roots = {**config.own_projects(), **config.project_folders()}
    warnings = [f"{name}: {line}" for name in headers for line in unknown_settings(roots[name])]
    warnings += _list_replaced(config)
    firsts = {key: config.index_of(key, config.methods[0]) for key in config.indexes}
    texts = {key: built[first] for key, first in firsts.items() if first in built}
    warnings += await list_data_warnings([s for s in samples if s.imdb_key in texts], texts)
    roomy, cramped = await list_budget_warnings(methods, built)
    warnings += [*roomy, *cramped]
    pairs = methods.pairs(headers)
    answering = [models["completion"] for pair in pairs if (models := methods.models(*pair))]
    warnings += list_graph_warnings(answering, built)
    warnings += list_model_warnings(config, methods, headers)
    embedding = (m for header in headers.values() for m in header.config.embedding_models.values())
    if has_no_wordllama() and any(is_hashed(model_name(model)) for model in embedding):
        warnings.append(STAND_IN)
    if judge is not None:
        warnings += list_judge_name_warnings(config, headers)
        warnings += list_judge_warnings(judge, answering)
        warnings += list_judge_limit_warnings(config, judge, methods, headers)
    warnings += _list_sample_warnings(config, samples)
    if config.equal_terms is not None and headers:
        first = next(iter(headers.values()))
        warnings += [
            f"equal terms give {name} the form of the answer alone: it has no context budget"
            for name, method in methods.search_methods().items()
            if BUDGET not in type(first.section(method)).model_fields
        ]
    return warnings, roomy


def _list_sample_warnings(config: EvaluationConfig, samples: Sequence[Sample]) -> list[str]:
    n, warnings = len(samples), list[str]()
    without = sum(not sample.evidence for sample in samples)
    if "oracle" in config.methods and without:
        warnings.append(
            f"oracle is not asked {without} of the {n} questions, as these quote no evidence"
        )
    unanswered = sum(sample.lacks_answer for sample in samples)
    if unanswered:
        warnings.append(
            f"{unanswered} of {counted(n, 'question')} have no answer, so that their responses are "
            "not judged on correctness"
        )
    unanswerable = sum(not sample.answerable for sample in samples)
    excluded = [m for m in config.metrics if not JUDGED_METRICS[m].of_unanswerable]
    if config.judges_claims:
        excluded.append(FAITHFULNESS)
    excluded += [n for n in ("rubric", "quality", "pairwise") if getattr(config.judge, n)]
    if unanswerable and excluded:
        warnings.append(
            f"{unanswerable} of {counted(n, 'question')} can't be answered from the documents and "
            f"{'is' if unanswerable == 1 else 'are'} right if declined; {join_names(excluded)} "
            f"{'leaves' if len(excluded) == 1 else 'leave'} them out, so that n is "
            f"{n - unanswerable} there"
        )
    return warnings


class _Room(NamedTuple):
    """A method's room for text, in tokens.

    ``label``: the method and its bound, in words. ``least``: tokens of the longest text unit, or of
    its passages.
    """

    label: str
    tokens: int
    least: int


def _room(
    name: str, methods: MethodSet, header: IndexHeader, counts: Sequence[int]
) -> _Room | None:
    budget, method = _budget(name, methods, header), methods.search_method(name)
    if budget is None:
        return None
    section = methods.header(name, header).section(method)
    tokens, bound = budget, f"{budget:,} tokens"
    if method == "local":
        tokens = int(budget * section.text_unit_prop)
        bound = f"{tokens:,} of its {bound} for text"
    elif method not in GRAPH_METHODS:
        largest = sum(sorted(counts, reverse=True)[: section.k])
        tokens, bound = (
            (largest, f"{section.k} text units") if largest < budget else (tokens, bound)
        )
    longest = max(counts)
    least = longest // count_passages(longest, getattr(section, "passage_tokens", None))
    return _Room(f"{name} ({bound})", tokens, least)


def _budget(name: str, methods: MethodSet, header: IndexHeader) -> int | None:
    method = methods.search_method(name)
    if name not in methods.search_methods() or not has_budget(method):
        return None
    return int(methods.header(name, header).section(method).max_context_tokens)


def answer_bound(name: str, methods: MethodSet, header: IndexHeader, most: int) -> int:
    """Return the most tokens of a method's answer; ``most`` applies if it reads no graph."""
    method, varied = methods.search_method(name), methods.header(name, header)
    own = own_bound(varied.model_configs(method)["completion"])
    if own is not None:
        return own.tokens
    return int(varied.section(method).max_answer_tokens) if method in GRAPH_METHODS else most


def _name_indexes(keys: Sequence[str]) -> str:
    """Return index keys as part of a sentence, quoted because they may read like words of it."""
    reprs = [repr(key) for key in keys]
    return f"{'index' if len(keys) == 1 else 'indexes'} {join_names(reprs)}"


_NAME = re.compile(r"(?<=[a-z,;] )([^\W\d_a-z]\w+)")
_FEWEST_NAMES = 3
_NAMES_BELOW = 0.35
_FEWEST_QUOTES = 3
_HALF = 0.5
_SHOWN = 83
_MOST_UNITS = 5_000
"""Most text units that are read word by word; of a larger index, every second, third, ..."""


@dataclass(frozen=True, slots=True)
class _Quoted:
    """The evidence of the questions of one index, looked up in one index."""

    n_questions: int
    n_items: int
    lacking: list[tuple[Sample, Evidence]]

    @property
    def n_matched(self) -> int:
        return self.n_items - len(self.lacking)

    @property
    def share(self) -> float | None:
        """Share of the evidence that the index contains; None if there is too little of it."""
        return self.n_matched / self.n_items if self.n_items >= _FEWEST_QUOTES else None


async def list_data_warnings(
    samples: Sequence[Sample], headers: Mapping[str, IndexHeader]
) -> list[str]:
    """Return warnings about evidence that texts lack, and about questions on other documents.

    ``headers``: of every index that is asked. An index is opened for each check and not kept,
    because all together may be large. Questions seem to belong elsewhere if, first, at least half
    of three or more quotes are in another index's text and less than half in their own. If quotes
    show nothing: if less than 35 % of three or more names (capitalized words that begin no
    sentence) are in the index.
    """
    by_key = {key: [s for s in samples if s.imdb_key == key] for key in headers}
    quoted = {key: await _look_up(by_key[key], headers[key]) for key in headers}
    warnings = _describe_lacking([evidence for evidence in quoted.values() if evidence is not None])
    for key, evidence in quoted.items():
        share = None if evidence is None else evidence.share
        if share is not None and share >= _HALF:
            continue
        line = None
        if evidence is not None and share is not None:
            line = await _check_quotes(key, evidence, by_key[key], headers)
        line = line or await _check_names(key, by_key[key], headers[key])
        warnings += [] if line is None else [line]
    return warnings


async def _look_up(samples: Sequence[Sample], header: IndexHeader) -> _Quoted | None:
    quoting = [sample for sample in samples if sample.expected_sources or sample.evidence]
    if not quoting:
        return None
    view = await IndexView.open(header, ("text_units", "documents"))
    if not view.has_text:
        return None
    view.look_for(quoting)
    items = [(sample, item) for sample in quoting for item in view.evidence_of(sample)]
    lacking = [(sample, item) for sample, item in items if not item.is_matched]
    return _Quoted(len(quoting), len(items), lacking) if items else None


def _describe_lacking(evidence: Sequence[_Quoted]) -> list[str]:
    """Return a line for quotes, and one for sources, that their own texts lack."""
    n_questions = sum(quoted.n_questions for quoted in evidence)
    warnings: list[str] = []
    for is_source, fault, then in (
        (
            False,
            "quote what their document does not contain",
            "these quotes are left out of the retrieval figures and of where answers were lost",
        ),
        (
            True,
            "expect a source that their index does not contain",
            "no search can have found these, and they count so",
        ),
    ):
        every = [entry for quoted in evidence for entry in quoted.lacking]
        lacking = [(s, item.text) for s, item in every if (item.kind == "source") is is_source]
        if lacking:
            questions = {(sample.imdb_key, sample.id): None for sample, _ in lacking}
            per_key = Counter(key for key, _ in questions)
            counts = ", ".join(f"{key} {n}" for key, n in per_key.items())
            where = "" if len(evidence) == 1 else f" ({counts})"
            sample, text = lacking[0]
            warnings.append(
                f"{len(questions)} of {n_questions} questions with evidence {fault}{where}, e.g. "
                f"{sample.name}: {shorten(text, _SHOWN)!r}; {then}"
            )
    return warnings


async def _check_quotes(
    key: str, own: _Quoted, samples: Sequence[Sample], headers: Mapping[str, IndexHeader]
) -> str | None:
    for other, header in headers.items():
        evidence = await _look_up(samples, header) if other != key else None
        if evidence is not None and (evidence.share or 0) >= _HALF:
            return (
                f"{key}: of the quotes in its questions {own.n_matched} of {own.n_items} are in "
                f"its own text, and {evidence.n_matched} of {evidence.n_items} in that of {other}; "
                "are the documents swapped?"
            )
    return None


async def _check_names(key: str, samples: Sequence[Sample], header: IndexHeader) -> str | None:
    names = {
        word
        for sample in samples
        for name in _NAME.findall(f"{sample.question} , {sample.ground_truth}")
        if name[0].isupper()  # in any alphabet with capitals
        for word in phrase_key(name).split()
    }
    if len(names) < _FEWEST_NAMES:
        return None
    entities = (await IndexView.open(header, ("entities",))).entities
    matches = names & {word for entity in entities for word in phrase_key(entity.title).split()}
    if len(matches) < _NAMES_BELOW * len(names):
        texts = list((await IndexView.open(header, ("text_units",))).texts.values())
        every = -(-len(texts) // _MOST_UNITS) or 1
        matches |= names & {word for text in texts[::every] for word in phrase_key(text).split()}
    if len(matches) >= _NAMES_BELOW * len(names):
        return None
    return (
        f"{key}: only {len(matches)} of the {len(names)} names in its {len(samples)} questions "
        "occur in the index; are the documents swapped?"
    )
