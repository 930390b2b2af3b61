"""Turns functions into ``graphrag eval`` commands, with the flags and error handling all share.

Also defines the records of flags (RunFlags, ShowFlags, DraftFlags). The modules that use them load
slowly, so the records are kept apart from these.
"""

import gc
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag.cli.fitness import refuse_if_unfit
from graphrag.eval.cli.paths import Paths
from graphrag.eval.cli.terminal import explained, warning_of_gone_keys
from graphrag.eval.errors import UsageError
from graphrag.installation import missing_requirements, pip_install
from graphrag.text.cli_hints import Invocation, remember, runnable


def option(help: str, *names: str, **how: Any) -> Any:
    """Return a typer option with a help text.

    Environment variables are described in the docs, so ``--help`` leaves them out.
    """
    if "min" in how:  # a range of numbers takes more room than it is worth
        how.setdefault("metavar", "N")
    return typer.Option(*names, help=help, show_envvar=False, **how)


Quiet = Annotated[bool, option("Print errors and a one-line answer only.", "--quiet", "-q")]
Full = Annotated[bool, option("Print every table and line.", "--full")]
Verbose = Annotated[bool, option("Show tracebacks, write a debug log.", "--verbose", "-v")]
MaxCost = Annotated[float | None, option("Stop before the cost passes US$ N.", min=0)]
Resume = Annotated[bool, option("Continue the last unfinished run.", "--resume")]
RetryErrors = Annotated[bool, option("Resume, and retry what failed.", "--retry-errors")]
Otel = Annotated[bool, option("Send spans to an OTLP collector.", "--otel")]
# --help leaves these out to fit a screen: docs/scale.md explains them.
Workers = Annotated[
    int | None, option("Processes that search and judge, by Ray.", min=1, hidden=True)
]
Address = Annotated[str | None, option("Address of a Ray cluster.", hidden=True)]

DRAFT_FILE = Path("eval") / "drafted_questions.json"
_PATHS = {
    "root": "Folder where other paths start.",
    "config": "Default: eval_config.yaml.",
    "output": "Folder of the results.",
}
_HOW_TO_GO_ON = ("resume", "retry_errors", "index", "dry_run")
_ONLY = inspect.Parameter.KEYWORD_ONLY
_RUNS = ("baseline", "changed", "new", "old", "run", "suite", "target")
"""Parameters that name a run, or the path of a file."""


def command(
    run: Callable[..., int],
    file_help: str = "",
    path_flags: Sequence[str] = tuple(_PATHS),
    is_group: bool = False,
) -> Callable[..., None]:
    """Return a typer command that calls ``run`` and exits with the code it returns.

    ``run`` gets a :class:`Paths` first. Its other parameters become flags; if the second parameter
    is a dataclass, that dataclass's fields do. The command also takes --root, --config and
    --output, which may also come before its name. An error is printed as one sentence and
    becomes an exit code, see :func:`explained`.

    - ``file_help``: the help text of --output where it may name a file, "" where it may not.
    - ``path_flags``: which of "root", "config" and "output" the command takes.
    - ``is_group``: whether the other commands are subcommands of this one.
    """
    _, *own = inspect.signature(run).parameters.values()
    record: Any = own.pop(0).annotation if own and is_dataclass(own[0].annotation) else None
    recorded = [] if record is None else [*inspect.signature(record).parameters.values()]

    def wrapped(context: typer.Context, **flags: Any) -> None:
        before: Paths | None = context.obj  # given before the subcommand
        named = {name: flags.pop(name, None) or getattr(before, name, None) for name in _PATHS}
        paths = Paths(**{name: value for name, value in named.items() if value is not None})
        if is_group:
            _prepare()
        if context.invoked_subcommand is not None:
            context.obj = paths
            return

        def explain() -> int:
            note_command(context, paths)
            if paths.file is not None and not file_help:
                msg = f"--output {paths.file} is a file; this command reads a folder of results."
                raise UsageError(msg)
            if record is None:
                return run(paths, **flags)
            return run(paths, record(**{p.name: flags.pop(p.name) for p in recorded}), **flags)

        with warning_of_gone_keys(bool(flags.get("quiet"))):
            raise typer.Exit(explained(explain, bool(flags.get("verbose"))))

    of_paths = [_path_flag(name, file_help, is_group) for name in path_flags]
    signature = [
        inspect.Parameter("context", _ONLY, annotation=typer.Context),
        *(of_paths if is_group else ()),
        *(parameter.replace(kind=_ONLY) for parameter in (*recorded, *own)),
        *(() if is_group else of_paths),
    ]
    wrapped.__signature__ = inspect.Signature(signature)  # pyright: ignore[reportFunctionMemberAccess]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    # A paragraph is one line: --help would keep the breaks of the code and add its own.
    paragraphs = inspect.cleandoc(run.__doc__ or "").split("\n\n")
    wrapped.__doc__ = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    wrapped.__name__ = run.__name__
    return wrapped


def _path_flag(name: str, file_help: str, is_group: bool) -> inspect.Parameter:
    help = file_help if file_help and name == "output" else _PATHS[name]
    # Where results are has its variables without a command's name, e.g. GRAPHRAG_EVAL_ROOT.
    made = option(help, f"--{name}", f"-{name[0]}", allow_from_autoenv=is_group)
    return inspect.Parameter(name, _ONLY, annotation=Annotated[Path | None, made], default=None)


def need_extra(extra: str, feature: str) -> None:
    """Raise UsageError, with the command that installs it, if an optional extra is missing.

    ``feature``: the name of the feature that needs the extra, for the error.
    """
    missing = missing_requirements(extra)
    if missing:
        raise UsageError(
            f"{feature} needs the extra {extra}, which is missing: {pip_install(missing)}"
        )


def _prepare() -> None:
    refuse_if_unfit()
    # After each 700 new objects, as Python does it, looking for garbage takes a tenth of the time.
    gc.set_threshold(10_000)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LANCEDB_LOG", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")  # the bars of DRIFT search, one a step


def note_command(context: typer.Context, paths: Paths) -> None:
    """Remember the given command, so that messages can show how to repeat it from any folder."""
    group = context if context.obj is None else context.parent
    path = context.command_path if group is None else group.command_path
    names = context.command_path[len(path) :].split()
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        is_given = source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
        value = context.params.get(name)
        if not is_given or name in (*_PATHS, *_HOW_TO_GO_ON) or value is None or value is False:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(_word(name, value))
        else:
            options += [parameter.opts[0], *([] if value is True else [_word(name, value)])]
    remember(
        Invocation(
            program=runnable(path),
            words=(*names, *arguments, *options),
            paths=paths.flags(),
            resumes=any(parameter.name == "resume" for parameter in context.command.params),
        )
    )


def _word(name: str, value: object) -> str:
    path = Path(str(value))
    is_path = name in _RUNS and (path.suffix == ".json" or path.is_file())
    return str(path.absolute()) if isinstance(value, Path) or is_path else str(value)


@dataclass(frozen=True, slots=True)
class RunFlags:
    """The flags of ``graphrag eval``, except --root, --config and --output."""

    methods: Annotated[str | None, option("E.g. tog,local,basic.", "--methods", "-m")] = None
    imdb_key: Annotated[str | None, option("Ask only the questions on this index.")] = None
    limit: Annotated[int | None, option("Ask only the first N questions.", min=1)] = None
    index: Annotated[bool, option("Build missing indexes first.", "--index")] = False
    dry_run: Annotated[bool, option("Show what a run would take; send nothing.", "--dry-run")] = (
        False
    )
    max_cost: MaxCost = None
    resume: Resume = False
    retry_errors: RetryErrors = False
    full: Full = False
    quiet: Quiet = False
    verbose: Verbose = False
    metrics: Annotated[str | None, option("E.g. correctness,relevance; or none.")] = None
    repeat: Annotated[int | None, option("Ask everything N times.", min=1)] = None
    skip_judge: Annotated[
        bool, option("Collect responses now, judge them later.", "--skip-judge")
    ] = False
    otel: Otel = False
    workers: Workers = None
    address: Address = None


@dataclass(frozen=True, slots=True)
class ShowFlags:
    """The flags of ``graphrag eval show`` that concern a run, and how much is printed."""

    question: Annotated[
        str | None, option("Show this question, by its id or the beginning of its text.")
    ] = None
    failed: Annotated[
        bool,
        option(
            "List what the method that the answer names has wrong, then where methods differ; "
            "--full: in full.",
            "--failed",
        ),
    ] = False
    method: Annotated[
        str | None, option("With --failed, --question or --changed: only this method.")
    ] = None
    changed: Annotated[
        str | None, option("Show answers that changed since this run, latest or pinned.")
    ] = None
    calls: Annotated[
        bool, option("With --question: print the requests to models and their replies.", "--calls")
    ] = False
    html: Annotated[
        Path | None,
        option("Write the run's page to this file; with --changed, the page of both runs."),
    ] = None
    export: Annotated[Path | None, option("Also write every row to this FILE.csv.")] = None
    full: Full = False
    quiet: Quiet = False

    @property
    def asks(self) -> bool:
        """Whether the flags ask for questions."""
        return self.question is not None or self.failed or self.changed is not None

    @property
    def lists(self) -> bool:
        """Whether the questions are listed, a line each."""
        others = self.question is not None or self.changed is not None or self.full
        return self.failed and not others


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True, slots=True)
class DraftFlags:
    """The flags of ``graphrag eval draft``, except --root, --config and --output."""

    n: Annotated[int, option("Questions to draft.", "--n", "-n", min=1)] = 60
    kinds: Annotated[str, option("What to draft.")] = "fact,link,global,unanswerable"
    personas: Annotated[
        list[str] | None, option('Who asks, such as "new employee"; repeat it for more.', "--for")
    ] = None
    styles: Annotated[
        str | None, option("How they ask: any of question,keywords,vague; default: no style.")
    ] = None
    assertions: Annotated[
        Path | None,
        option("Draft no questions, but assertions for the rows of this dataset.", "--assertions"),
    ] = None
    keep_known: Annotated[
        bool, option("Keep, tagged known, what the model answers without a text.", "--keep-known")
    ] = False
    dry_run: Annotated[bool, option("Show what it would take; send nothing.", "--dry-run")] = False
    max_cost: MaxCost = None
    quiet: Quiet = False
    verbose: Verbose = False
