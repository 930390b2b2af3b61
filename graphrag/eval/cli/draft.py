"""``graphrag eval draft``: questions from an index, each proven before it is kept."""

from graphrag.eval.cli.flags import DraftFlags
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import starting


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
