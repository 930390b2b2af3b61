"""Defines ``graphrag eval import``, which makes a project and a dataset from benchmark files."""

import hashlib
import json
from pathlib import Path
from typing import Annotated

import typer

from graphrag.eval.cli.command import Quiet, Verbose, option
from graphrag.eval.cli.init import SETTINGS, write_config, write_template
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import DONE, starting, working
from graphrag.eval.errors import DatasetError, UsageError
from graphrag.eval.store.atomic_files import write_file
from graphrag.text.cli_hints import eval_line
from graphrag.text.console import open_console, say
from graphrag.text.message_phrases import counted

_DATASET = Path("eval") / "questions.json"
_EXAMPLES = 3


def import_(
    paths: Paths,
    format: Annotated[str, typer.Argument(help="For example hotpotqa; a wrong one lists all.")],
    path: Annotated[
        list[Path], typer.Argument(help="The files to import.", exists=True, dir_okay=False)
    ],
    limit: Annotated[int | None, option("Import only the first N questions.", min=1)] = None,
    dry_run: Annotated[bool, option("Write nothing.", "--dry-run")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Make a project from a benchmark's files or another tool's tests.

    What can't be matched is listed before anything is written. Nothing is downloaded.
    """
    with starting(quiet):
        from graphrag.eval.dataset.benchmarks import FORMATS
        from graphrag.eval.runner.benchmark_import import Import
    if format not in FORMATS:
        raise UsageError(
            f"There is no format {format!r}; known: {', '.join(FORMATS)}. Any file with a column "
            "of questions and one of answers is a dataset as it is: name it under dataset.path, "
            "and its columns under dataset.columns."
        )
    with working(open_console(stderr=True, quiet=quiet), "Reading the files"):
        result = Import(format, path, limit)
    reading, documents = result.reading, result.documents
    for warning in reading.warnings:
        say(f"{warning}.", stderr=True)
    for problem, positions in reading.problems.items():
        some = "; ".join([*positions[:_EXAMPLES], *(["..."] if len(positions) > _EXAMPLES else [])])
        say(f"{problem}: {len(positions):,} ({some})")
    if not result.rows:
        raise DatasetError("The files contain no question to ask; nothing is written.")
    amounts = f"{counted(len(result.rows), 'question')} and {counted(len(documents), 'document')}"
    if dry_run:
        say(f"{amounts} can be imported.")
        return DONE
    root, texts = paths.root, paths.root / "input"
    dataset = root / _DATASET
    there = [p for p in (dataset, *(texts.rglob("*") if documents else ())) if p.is_file()]
    if there:
        msg = f"{there[0]} is there and would be mixed with the import; nothing is written"
        raise UsageError(f"{msg}. Name another --root.")
    for name, (title, text) in documents.items():
        content = f"{title}\n\n{text}".strip().encode("utf-8", "replace").decode()
        write_template(texts / name, content + "\n")
    head = {"format": format, "source": FORMATS[format].source, "license": FORMATS[format].license}
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path}
    head |= {"version": reading.version, "files": digests, "questions": result.rows}
    messages = [write_template(dataset, json.dumps(head, indent=1, ensure_ascii=False) + "\n")]
    if reading.problems:
        listed = dataset.with_suffix(".not_matched.json")
        write_file(listed, json.dumps(reading.problems, indent=1, ensure_ascii=False) + "\n")
        messages.append(f"Wrote {listed}: every position of each problem above.")
    if not any(root.glob("settings.[yj]*")):
        messages.append(write_template(root / "settings.yaml", SETTINGS))
    if (config := root / "eval_config.yaml").exists():
        messages.append(f"Name {_DATASET} under dataset.path in {config}.")
    messages += write_config(root, _DATASET)
    say(f"Imported {amounts}.")
    for line in messages:
        say(line, quiet=quiet)
    if not documents:
        say(f"The files contain no documents: put yours into {texts}.")
    say(f"Next: {eval_line('--index', '--root', root)}", quiet=quiet)
    return DONE
