"""``graphrag eval draft``: questions from an index, each proven before it is kept."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from graphrag.eval.cli.command import MaxCost, Quiet, Verbose, option
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import starting

DRAFT_FILE = Path("eval") / "drafted_questions.json"


@dataclass(frozen=True, slots=True)
class DraftFlags:
    """What is drafted."""

    n: Annotated[int, option("Questions to draft.", "--n", "-n", min=1)] = 60
    kinds: Annotated[str, option("What to draft.")] = "fact,link,global,unanswerable"
    personas: Annotated[
        list[str] | None,
        option('Who asks, such as "new employee"; may be given again.', "--for"),
    ] = None
    styles: Annotated[
        str | None, option("How they ask, of question,keywords,vague; without it, any way.")
    ] = None
    assertions: Annotated[
        Path | None,
        option("Draft no questions, but assertions for the rows of this dataset.", "--assertions"),
    ] = None
    keep_known: Annotated[
        bool, option("Keep what the model answers without any text, tagged.", "--keep-known")
    ] = False
    dry_run: Annotated[bool, option("Show what it would take; send nothing.", "--dry-run")] = False
    max_cost: MaxCost = None
    quiet: Quiet = False
    verbose: Verbose = False


def draft(place: Place, flags: DraftFlags) -> int:
    """Draft questions from a built index; keep those it can prove.

    It writes a dataset, the drafts thrown away with their causes, and every call, so that you can
    continue after an interruption.

    With --assertions, it drafts what an answer to each question of a dataset must say, and keeps
    what the row's own answer and quotes support.

    Exit code 3: fewer questions than you asked for, or rows without assertions.
    """
    with starting(flags.quiet):
        from graphrag.eval.cli.draft_questions import draft_questions

    return draft_questions(place, flags)
