"""What the ``graphrag eval`` commands share: where the results are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graphrag.eval.place import Place

RootOption = Annotated[
    Path | None, typer.Option("--root", "-r", help="Folder that paths are relative to.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Default: eval_config.yaml in the root."),
]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the results.")]


def place_of(
    context: typer.Context, root: Path | None, config: Path | None, output: Path | None
) -> "Place":
    """Return where the results are; a flag may stand before or after the command's name."""
    from graphrag.eval.place import Place

    outer: tuple[Path, Path | None, Path | None] = context.obj
    return Place(root or outer[0], config or outer[1], output or outer[2])
