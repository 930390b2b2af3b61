"""Drafts questions or assertions from an index, and prints and writes those that are kept.

A draft is kept if further model calls confirm it.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import cast

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.annotation.review import keep_decisions
from graphrag.eval.cli.command import DRAFT_FILE, DraftFlags, split_names
from graphrag.eval.cli.interrupts import INTERRUPTED, run_coroutine, stop_by
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, INCOMPLETE, working
from graphrag.eval.cli.validate import find_roots
from graphrag.eval.config.sections import DatasetSettings
from graphrag.eval.dataset.dataset_reader import VETTED, Assertion, Sample, check_keys, read_dataset
from graphrag.eval.dataset.drafts import KINDS, REHEARSAL, STYLES, Asker, Cause
from graphrag.eval.errors import AllowanceStop, NoRowsError, RunStoppedError, UsageError
from graphrag.eval.report.formatting import money
from graphrag.eval.runner.custom_methods import answering_config, open_answering
from graphrag.eval.runner.draft_materials import Materials
from graphrag.eval.runner.drafting import CALLS_A_DRAFT, MOST_TRIES, Drafted, Drafter
from graphrag.eval.runner.indexes import read_headers
from graphrag.eval.runner.preflight import check_prices
from graphrag.eval.store.atomic_files import write_file
from graphrag.eval.store.session import CallFile
from graphrag.query.client.model_prices import is_offline
from graphrag.query.client.rate_limit import AllowanceSpentError, CallLimit, Spending
from graphrag.query.client.usage import CallLog, sum_usages
from graphrag.query.index.header import model_name
from graphrag.query.index.tables import open_tables
from graphrag.text.cli_hints import again, eval_line_here
from graphrag.text.console import open_console, say
from graphrag.text.message_phrases import counted

ASSERTIONS_FILE = Path("eval") / "drafted_assertions.json"
"""The default file of drafted assertions, which the row's answer supports."""
_CALLS_A_ROW = 2
"""Calls per row: one proposes its assertions, one rules on them."""
_AT_ONCE, _PATIENCE_S = 8, 300.0
_REHEARSAL = (
    "This is a rehearsal: the embedded models draft and check by comparing words, and the rows get "
    f"the tag {REHEARSAL}. Have a language model draft the questions that are to count."
)
_LATER = "what was drafted is kept, and no call is paid for twice. Continue with: "


@dataclass(frozen=True, slots=True)
class _Job:
    """The request to ``draft``, and its result for each index.

    - ``rows``: the dataset for whose rows assertions are drafted; None if questions are drafted.
    - ``spending``: the cost of this draft and earlier ones into the same file.
    - ``drafted``: index key -> the drafts that were kept and thrown away.
    """

    paths: Paths
    flags: DraftFlags
    roots: Mapping[str, Path]
    path: Path
    rows: Sequence[Sample] | None
    spending: Spending
    drafted: dict[str, Drafted] = field(default_factory=dict[str, Drafted])

    @property
    def bare(self) -> list[Sample]:
        """The rows without assertions, for which some are drafted."""
        return [row for row in self.rows or () if not row.assertions]

    @property
    def assertions(self) -> dict[str, list[Assertion]]:
        """The assertions that were kept, by the ids of their rows."""
        return {k: v for drafted in self.drafted.values() for k, v in drafted.assertions.items()}


def draft_questions(paths: Paths, flags: DraftFlags) -> int:
    """Draft questions or assertions, write those that are confirmed, and return the exit code."""
    kinds = _read_names("kinds", flags.kinds, KINDS)
    styles = [""] if flags.styles is None else _read_names("styles", flags.styles, STYLES)
    personas = [" ".join(persona.split()) for persona in flags.personas or ()]
    if "" in personas:
        raise UsageError('--for names nobody; say who asks, such as --for "new employee".')
    personas = dict.fromkeys(personas or [""])
    askers = [Asker(persona, style) for style in styles for persona in personas]
    roots = find_roots(paths)
    rows = None if flags.assertions is None else _read_rows(paths, flags.assertions, roots)
    default = DRAFT_FILE if rows is None else ASSERTIONS_FILE
    path = paths.file or paths.root / (paths.output or default)
    if path.suffix.lower() != ".json":
        msg = f"--output: the questions are written to a file; name one that ends in .json: {path}"
        raise UsageError(msg)
    if not flags.dry_run and rows is None:
        keep_decisions(path, [])  # an unusable file stops it now, and not when all is paid
    job = _Job(
        paths=paths,
        flags=flags,
        roots=roots,
        path=path,
        rows=rows,
        spending=Spending(flags.max_cost),
    )
    stopped, code = None, DONE
    interrupted = f"Interrupted; {_LATER}{again()}"
    try:
        with stop_by(last_words=lambda: interrupted):
            run_coroutine(_draft(job, kinds, askers))
    except AllowanceStop as error:
        refused = cast("AllowanceSpentError", error.__cause__)
        line = again(instead={"--max-cost": f"{refused.allow_usd:g}"})
        stopped = (
            f"Stopped at the allowed ${flags.max_cost:g}: {money(job.spending.spent_usd, '$')} "
            f"is spent in all, and {error}; raise --max-cost; {_LATER}{line}"
        )
        code = INCOMPLETE
    except RunStoppedError as error:
        stopped, code = f"Stopped: {str(error).rstrip('.')}; {_LATER}{again()}", INCOMPLETE
    except KeyboardInterrupt:
        stopped, code = interrupted, INTERRUPTED
    if not flags.dry_run:
        _show(job, n_vetted=_write(job))
    if stopped is not None:
        say(stopped, stderr=True)
        return code
    results = job.drafted.values()
    n_missing = 0 if flags.dry_run else len(job.bare) - len(job.assertions)
    if n_missing or any(drafted.short for drafted in results):
        code = INCOMPLETE
    if code and any(drafted.unread for drafted in results):
        say(f"Ask again for replies that can't be used with: {again()}", quiet=flags.quiet)
    return code


def _read_names(flag: str, text: str, choices: Sequence[str]) -> list[str]:
    names = split_names(text)
    unknown = next((name for name in names if name not in choices), None)
    if unknown is not None or not names:
        known = nearest(unknown or "", choices)
        problem = f": there is no {flag[:-1]} {unknown!r}{known}" if unknown else " names none"
        raise UsageError(f"{as_sentence(f'--{flag}{problem}')} Known: {', '.join(choices)}.")
    return list(dict.fromkeys(names))


def _read_rows(paths: Paths, file: Path, roots: Mapping[str, Path]) -> list[Sample]:
    settings = paths.read_config(writes=False).dataset if paths.has_config() else DatasetSettings()
    path = paths.root / file if (paths.root / file).exists() else file
    only_key = next(iter(roots)) if len(roots) == 1 else None
    dataset = read_dataset(path, only_key, settings.columns, settings.encoding)
    for warning in dataset.warnings:
        say(f"Warning: {warning}", stderr=True)
    check_keys(dataset.samples, roots)
    return dataset.samples


async def _draft(job: _Job, kinds: Sequence[str], askers: Sequence[Asker]) -> None:
    flags, rows = job.flags, job.rows
    notes = open_console(stderr=True, quiet=flags.quiet)
    headers = await read_headers(job.roots, dict.fromkeys(job.roots, ("bm25",)))
    models = {key: model_name(answering_config(header)) for key, header in headers.items()}
    if flags.max_cost is not None:
        check_prices(sorted({*models.values()}), "-n")
    if any(map(is_offline, models.values())):
        notes.print(_REHEARSAL, soft_wrap=True)
    if rows is not None and flags.dry_run:
        n = len(job.bare)
        say(f"About {_CALLS_A_ROW * n:,} calls for {counted(n, 'row')} without assertions.")
        return
    quotas = _share_out(flags.n, list(job.roots), kinds)
    materials = {key: Materials(await open_tables(headers[key].config)) for key in job.roots}
    least, most = (0, 0) if rows is not None else _count_calls(materials, quotas, flags.quiet)
    if flags.dry_run:
        say(f"About {least:,} calls if every draft is kept, at most about {most:,}.")
        return
    limit = CallLimit(_AT_ONCE, _PATIENCE_S, spending=job.spending)
    questions = _read_questions(job.paths, job.path)
    with CallFile(job.path.with_suffix(".calls.jsonl")) as calls:
        for attempt in calls.attempts:
            job.spending.count(attempt)
        for key in job.roots:
            with working(notes, f"Drafting from {key}") as update:
                drafter = Drafter(
                    open_answering(headers[key]),
                    lambda: CallLog(limit=limit, journal=calls),
                    lambda kind, done, total, update=update, key=key: update(
                        f"Drafting from {key}: {done}/{total} {kind}"
                    ),
                    flags.keep_known,
                    askers,
                )
                drafted = job.drafted[key] = Drafted(is_rehearsal=is_offline(models[key]))
                if rows is None:
                    await drafter.draft(materials[key], quotas[key], questions, drafted)
                else:
                    rows_of_key = [row for row in job.bare if row.imdb_key == key]
                    await drafter.draft_assertions(rows_of_key, drafted)
            if drafted.short or rows is not None:
                calls.drop_last(drafted.unread)
            questions += [draft.question for draft, _ in drafted.kept]


def _share_out(n: int, keys: Sequence[str], kinds: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return key -> kind -> number of questions, shared out as evenly as possible."""
    pairs = [(key, kind) for kind in kinds for key in keys]
    share, rest = divmod(n, len(pairs))
    numbers = {pair: share + (number < rest) for number, pair in enumerate(pairs)}
    return {key: {kind: numbers[key, kind] for kind in kinds if numbers[key, kind]} for key in keys}


def _read_questions(paths: Paths, path: Path) -> list[str]:
    """Return the questions that the dataset already has, so that none is drafted twice.

    Empty without a dataset, and if the dataset is the file that is drafted: its drafts are made
    again from the kept calls.
    """
    if not paths.has_config():
        return []
    config = paths.read_config(writes=False)
    file = Path(config.dataset_path)
    if not file.is_file() or file.resolve() == path.resolve():
        return []
    try:
        samples = read_dataset(file, "", config.dataset.columns, config.dataset.encoding).samples
    except NoRowsError:
        return []
    return [sample.question for sample in samples]


def _count_calls(
    materials: dict[str, Materials], quotas: dict[str, dict[str, int]], quiet: bool
) -> tuple[int, int]:
    """Return the number of calls if every draft is kept, and the most that it can take.

    Prints where an index offers fewer sources than the number of questions wanted.
    """
    least = most = 0
    for key, by_kind in quotas.items():
        for kind, number in by_kind.items():
            tries = MOST_TRIES * number
            there = sum(1 for _ in islice(materials[key].of(kind), tries))
            least += min(number, there) * CALLS_A_DRAFT[kind]
            most += min(tries, there) * CALLS_A_DRAFT[kind]
            if there < number:
                say(f"{key} has {_describe_shortage(kind, there, number)}.", quiet=quiet)
    return least, most


def _describe_shortage(kind: str, there: int, wanted: int) -> str:
    """Return a clause on an index with too few sources to draft questions of a kind from."""
    if there:
        return (
            f"only {counted(there, 'source')} to draft {kind} questions from; {wanted} were wanted"
        )
    lacking = "name that joins a few of its texts" if kind == "link" else "source for it"
    return f"no {lacking}, so no question of kind {kind} can be drafted ({wanted} wanted)"


def _write(job: _Job) -> int:
    """Write the files, and return how many rows a person has vetted."""
    results, assertions = job.drafted.values(), job.assertions
    if job.rows is None:
        drafts = [
            draft.row(key if len(job.roots) > 1 else None, proofs, drafted.is_rehearsal)
            for key, drafted in job.drafted.items()
            for draft, proofs in drafted.kept
        ]
        rows = keep_decisions(job.path, drafts)
    else:
        rehearsed = {key for key, drafted in job.drafted.items() if drafted.is_rehearsal}
        rows = [_row_of(s, assertions.get(s.id), s.imdb_key in rehearsed) for s in job.rows]
    if rows:
        text = json.dumps(rows, indent=2, ensure_ascii=False)
        write_file(job.path, f"{text}\n", "--output")
    away = (draft.to_dict() for drafted in results for draft in drafted.thrown_away)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in away)
    write_file(job.path.with_suffix(".thrown_away.jsonl"), lines, "--output")
    return 0 if job.rows is not None else sum(bool(row.get(VETTED)) for row in rows)


def _row_of(
    sample: Sample, assertions: Sequence[Assertion] | None, is_rehearsal: bool
) -> dict[str, object]:
    values, tags = replace(sample, tags={}).to_dict(), sample.tags
    values |= {"answer": values.pop("ground_truth")}
    if assertions is not None:
        values["assertions"] = [assertion.model_dump() for assertion in assertions]
        if is_rehearsal:
            tags = {**tags, "tags": [*dict.fromkeys([*sample.values_of("tags"), REHEARSAL])]}
    return {**{k: v for k, v in values.items() if v not in ("", [], {}, True)}, **tags}


def _show(job: _Job, n_vetted: int) -> None:
    results, quiet = job.drafted.values(), job.flags.quiet
    kinds = Counter(draft.kind for drafted in results for draft, _ in drafted.kept)
    start = "Rehearsal: " if any(drafted.is_rehearsal for drafted in results) else ""
    if job.rows is None:
        parts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        kept_of = f"{counted(kinds.total(), 'question')} kept of {job.flags.n}"
        say(f"{start}{kept_of}{f' ({parts})' if parts else ''}.")
    else:
        weights = Counter(each.weight for listed in job.assertions.values() for each in listed)
        say(
            f"{start}{len(job.assertions):,} of {counted(len(job.bare), 'row')} got assertions, "
            f"{weights['vital']:,} of them vital and {weights['okay']:,} okay."
        )
    causes = sum((drafted.causes() for drafted in results), Counter[Cause]())
    for cause, number in causes.most_common():
        say(f"  {number} thrown away: {cause.value}", quiet=quiet)
    usage = sum_usages(usage for drafted in results for usage in drafted.usages)
    cost = "" if not usage.cost_usd else f", {money(usage.cost_usd, '$')}"
    tokens = usage.prompt_tokens + usage.output_tokens
    n_kept = sum(drafted.n_kept_calls for drafted in results)
    before = f" {n_kept:,} of the calls are of an earlier draft and not sent again."
    line = f"{usage.llm_calls:,} calls, {tokens:,} tokens{cost}.{before if n_kept else ''}"
    say(line, quiet=quiet)
    if kinds or job.rows is not None:
        vetted = "Nobody has looked at them yet."
        if n_vetted:
            vetted = f"{n_vetted} vetted rows stay as they were, and rejected ones stay out."
        say(f"Wrote {job.path}, and next to it the drafts thrown away. {vetted}")
        say(f"Next: vet them with {eval_line_here('view', '--review', job.path)}", quiet=quiet)
        if (where := _name_unless_configured(job.paths, job.path)) is not None:
            name = job.paths.config_path.name
            say(f"Then set dataset.path to {where} in {name}.", quiet=quiet)


def _name_unless_configured(paths: Paths, path: Path) -> Path | None:
    """Return the value to set ``dataset.path`` to; None if the configuration names the file."""
    path = path.resolve()
    if paths.has_config() and path == Path(paths.read_config(writes=False).dataset_path).resolve():
        return None
    root = paths.root.resolve()
    return path.relative_to(root) if path.is_relative_to(root) else path
