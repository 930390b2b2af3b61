"""Where runs are kept: eval.db in the folder of the results, or a PostgreSQL database."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from graphrag.eval.config import EvaluationConfig, name_store


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """The store of a folder of results; it answers what the path of an eval.db is asked.

    Attributes
    ----------
    parent : Path
        The folder of the results: files are written there, wherever the runs are kept.
    url : str or None
        The database that keeps the runs, as ``postgresql://user@host/database``; None: eval.db
        in the folder.
    """

    parent: Path
    url: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, config: EvaluationConfig) -> "StoreLocation":
        """Return that of a configuration."""
        return cls(config.output_folder, config.output.store)

    @property
    def path(self) -> Path:
        """The eval.db of the folder, whether it is there and used or not."""
        return self.parent / "eval.db"

    def with_name(self, name: str) -> Path:
        """Return a file of the folder."""
        return self.parent / name

    def is_file(self) -> bool:
        """Whether there may be runs: eval.db is there, or a database is named."""
        return self.url is not None or self.path.is_file()

    def __str__(self) -> str:
        """Return the path, or the database without user and password."""
        return str(self.path) if self.url is None else name_store(self.url)


StorePlace: TypeAlias = Path | StoreLocation
"""The path of an eval.db, or where else the runs are."""
