"""``graphrag eval import``: a project and a dataset of a published benchmark's files."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag.command_lines import eval_line
from graphrag.eval.cli.command import Quiet, option
from graphrag.eval.cli.init import write_config, write_template
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, open_console, say, starting, working
from graphrag.eval.errors import ConfigError, DatasetError, UsageError
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.dataset.benchmarks import Reading

_DATASET = Path("eval") / "questions.json"
_NOT_MATCHED = _DATASET.with_suffix(".not_matched.json")
_EXAMPLES = 3
_SETTINGS = """\
# The embedded models need no key and no network, and are no language model: they try the way.
# Before figures count, name your own models in the first two blocks: docs/own_machine.md.
completion_models:
  default_completion_model: {type: offline, model_provider: offline, model: rules}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 384}
vector_store: {vector_size: 384}
chunking: {type: tokens, size: 600, overlap: 100, encoding_model: o200k_base}
extract_graph:
  entity_types: [person, place, organization, object, event]
  max_gleanings: 0
"""


@dataclass(frozen=True, slots=True)
class ImportFlags:
    """What is imported."""

    limit: Annotated[int | None, option("Only the first questions.", min=1)] = None
    questions_only: Annotated[bool, option("Leave the input.", "--questions-only")] = False
    dry_run: Annotated[bool, option("Write nothing.", "--dry-run")] = False
    quiet: Quiet = False


def import_(
    place: Place,
    flags: ImportFlags,
    format: Annotated[str, typer.Argument(help="Such as hotpotqa; any other word lists them.")],
    path: Annotated[list[Path], typer.Argument(help="Its files.", exists=True, dir_okay=False)],
) -> int:
    """Make a project and a dataset of a benchmark's files, or of another tool's tests.

    What can't be matched is listed before anything is written. Nothing is downloaded.
    """
    with starting(flags.quiet):
        from graphrag.eval.dataset.benchmarks import FORMATS, Reading, read_entries
        from graphrag.eval.runner.importing import collect
        from graphrag.eval.store.whole_files import write_file
    if format not in FORMATS:
        msg = f"There is no format {format!r}; known: {', '.join(FORMATS)}."
        raise UsageError(msg)
    root, origin, reading = place.root, FORMATS[format], Reading()
    folder = None if flags.questions_only else _input_folder(root)
    with working(open_console(stderr=True, quiet=flags.quiet), "Reading the files"):
        by_passage = origin.by_passage and folder is not None
        entries = read_entries(format, path, reading)
        documents, rows = collect(entries, by_passage, flags.limit, reading)
        documents = documents if folder else {}
    _tell(reading)
    if not rows:
        raise DatasetError("The files hold no question to ask; nothing is written.")
    what = f"{counted(len(rows), 'question')} and {counted(len(documents), 'document')}"
    if flags.dry_run:
        say(f"{what} can be imported.")
        return DONE
    _refuse_mixing([root / _DATASET, *((folder or root).rglob("*") if documents else ())])
    for name, (title, text) in documents.items():
        content = f"{title}\n\n{text}".strip().encode("utf-8", "replace").decode()
        write_template((folder or root) / name, content + "\n")
    head = {"format": format, "source": origin.source, "license": origin.license}
    head |= {"version": reading.version, "files": {each.name: _digest(each) for each in path}}
    said = [write_template(root / _DATASET, _json({**head, "questions": rows}))]
    if reading.problems:
        write_file(root / _NOT_MATCHED, _json(reading.problems))
        said.append(f"Wrote {root / _NOT_MATCHED}: each place of what is listed above.")
    if folder is not None and not _has_settings(root):
        said.append(write_template(root / "settings.yaml", _SETTINGS))
    said += write_config(root, _DATASET)
    say(f"Imported {what}.")
    for line in said:
        say(line, quiet=flags.quiet)
    if folder is not None and not documents:
        say(f"The files hold no documents: put yours into {folder}.")
    say(f"Next: {eval_line('--index', '--root', root)}", quiet=flags.quiet)
    return DONE


def _tell(reading: "Reading") -> None:
    for warning in reading.warnings:
        say(f"{warning}.", stderr=True)
    for problem, places in reading.problems.items():
        some = "; ".join([*places[:_EXAMPLES], *(["..."] if len(places) > _EXAMPLES else [])])
        say(f"{problem}: {len(places):,} ({some})")
    if reading.unread:
        fields = ", ".join(f"{name} ({n:,})" for name, n in reading.unread.most_common())
        say(f"Fields that are not imported, with their number of rows: {fields}")


def _input_folder(root: Path) -> Path:
    """Return where the texts of a project are; raises ConfigError if it reads them elsewhere."""
    from graphrag.config.project_settings import read_settings
    from graphrag.config.settings_files import SettingsError

    folder = root / "input"
    try:
        config = read_settings(root) if _has_settings(root) else None
    except SettingsError as error:
        raise ConfigError(str(error)) from error
    reads = config and (str(config.input.type), Path(str(config.input_storage.base_dir)))
    if reads not in (None, ("text", folder.resolve())):
        msg = f"{root} does not read text files from {folder}, where they would be written"
        raise ConfigError(f"{msg}; name another --root, or --questions-only.")
    return folder


def _has_settings(root: Path) -> bool:
    return any(root.glob("settings.[yj]*"))


def _refuse_mixing(files: Iterable[Path]) -> None:
    there = [path for path in files if path.is_file()]
    if there:
        more = f" and {len(there) - 1:,} more" if len(there) > 1 else ""
        msg = f"{there[0]}{more} would be mixed with what is imported; nothing is written"
        raise UsageError(f"{msg}. Name another --root, or keep the input by --questions-only.")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _json(values: object) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"
