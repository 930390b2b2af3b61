"""What ``graphrag eval recover`` does: a damaged eval.db made anew from what can be read of it."""

from graphrag.command_lines import eval_line_here
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, explained, open_console, working
from graphrag.eval.errors import UsageError
from graphrag.eval.store import Recovery, recover_store
from graphrag.text.phrases import counted


def run_recover(place: Place, quiet: bool = False) -> int:
    """Recover the store of a place, say what became of it, and return the exit code."""

    def recover() -> int:
        place_of_runs = place.store_path()
        if not place_of_runs.is_file():
            msg = f"There is no run in {place_of_runs.parent}; name its folder with --output."
            raise UsageError(msg)
        console = open_console(quiet=quiet)
        with working(open_console(stderr=True, quiet=quiet), "Recovering the runs"):
            recovered = recover_store(place_of_runs)
        for line in _describe(recovered):
            console.print(line, soft_wrap=True)
        return DONE

    return explained(recover)


def _describe(found: Recovery) -> list[str]:
    n_kept = sum(found.kept.values())
    lines = [
        f"Kept {counted(n_kept, 'row')} of {counted(found.kept.get('runs', 0), 'run')}; lost "
        + (", ".join(f"{n or 'some'} of {table}" for table, n in found.lost.items()) or "none")
        + f". The file as it was found: {found.damaged}"
    ]
    if found.lost and not found.unfinished:
        lines.append("No run that is there lacks anything.")
    if found.unfinished:
        lines.append(
            f"Unfinished, as they lost something or may have: {', '.join(found.unfinished)}. Go on "
            f"with the command that began one and --resume, as in: {eval_line_here('--resume')}; "
            "only what is missing is asked. What the lost rows had cost counts as not known."
        )
    return lines
