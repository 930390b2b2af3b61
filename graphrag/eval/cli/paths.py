"""Finds the configuration, the folder of results and the run that a command's flags name."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag.eval.errors import ConfigError
from graphrag.text.cli_hints import say_instead
from graphrag.text.console import open_console

if TYPE_CHECKING:
    from graphrag.eval.config.evaluation import EvaluationConfig

_NOT_FOLDERS = (".csv", ".db", ".html", ".json", ".jsonl", ".md", ".txt", ".xml", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a command's configuration and results, by --root, --config and --output.

    - ``root``: folder that the other two are relative to.
    - ``config``: the configuration file; None: eval_config.yaml in the root. One that the root
      lacks and the working directory has is taken from there.
    - ``output``: folder of the results; None: the one that the configuration names. ``suite`` and
      ``draft`` also take a file ``*.json``; other results then go into the configuration's folder.
    """

    root: Path = Path()
    config: Path | None = None
    output: Path | None = None

    @property
    def file(self) -> Path | None:
        """The file that ``output`` names; None if it names a folder or is None."""
        if self.output is None:
            return None
        path = self.root / self.output
        return path if path.suffix.lower() == ".json" and not path.is_dir() else None

    @property
    def folder(self) -> Path | None:
        """The folder that ``output`` names; None if it names a file or is None.

        Raises ConfigError if the name is that of a file of another kind.
        """
        if self.output is None or self.file is not None:
            return None
        return _checked(self.root / self.output, "--output")

    @property
    def config_path(self) -> Path:
        """The path of the configuration file, whether it exists or not."""
        if self.config is None:
            return self.root / "eval_config.yaml"
        path = self.root / self.config
        return self.config if not path.exists() and self.config.exists() else path

    def flags(self) -> dict[str, str]:
        """Return flag -> absolute path, so that the flags name the same paths from any folder."""
        flags = {"--root": str(self.root.absolute())}
        if self.config is not None:
            flags["--config"] = str(self.config_path.absolute())
        if self.output is not None:
            flags["--output"] = str((self.root / self.output).absolute())
        return flags

    def store_path(self) -> Path:
        """Return the path of eval.db in the output folder, whether it exists or not.

        Raises ConfigError if the configuration is needed and can't be read, or if a file is named
        as the folder.
        """
        from graphrag.eval.types.own_code import declared_taken

        folder = self.folder
        with declared_taken():
            if folder is None:
                return self.read_config().store_path
            if self.has_config():
                with suppress(ConfigError):  # it may name judges and measures of one's own
                    self.read_config(writes=False)
        return folder / "eval.db"

    def has_config(self) -> bool:
        """Return whether the configuration file exists, or --config names one."""
        return self.config is not None or self.config_path.is_file()

    def read_config(self, writes: bool = True) -> "EvaluationConfig":
        """Return the configuration with the folder of results that --output names.

        ``writes``: whether the command writes results; if so, the configuration may not name a
        folder outside of the root. Raises ConfigError if it does, if it can't be read, or if the
        results would go into a file.
        """
        from graphrag.eval.config.evaluation import EvaluationConfig

        folder = self.folder
        config = EvaluationConfig.from_yaml(
            self.config_path, self.root, allow_outside=folder is not None or not writes
        )
        if folder is None:
            _checked(config.output_folder, "output.dir")
            return config
        output = config.output.model_copy(update={"dir": str(self.output)})
        return config.model_copy(update={"output": output})

    def find_run(self, name: str, suites: bool = False, quiet: bool = False) -> str:
        """Return the id of the run that a name means.

        ``name``: a run id, its beginning, "latest", "pinned", or the path of a file of rows.
        "pinned" and a path are returned as they are. For "latest", prints which run that is;
        ``suites``: whether it is one of ``graphrag eval suite``, see :func:`latest_run`. Raises
        UsageError if there is no such run or file, and StoreError if the store can't be read.
        """
        from graphrag.eval.store import database

        store_path = self.store_path()
        is_file = name.endswith((".json", ".csv")) or Path(name).is_file()
        if is_file or name == database.PINNED:
            path = Path(name) if is_file else database.baseline_path(store_path)
            if not path.is_file():
                raise database.no_such_file(path, store_path)
            return name
        with database.open_store(store_path) as store:
            runs = store.runs()
        run = database.find_run(runs, name, store_path, suites)
        if name == database.LATEST:
            notes = open_console(stderr=True, quiet=quiet)
            notes.print(database.explain_latest(runs, run), soft_wrap=True)
            say_instead(name, run.run_id)
        return run.run_id


def _checked(path: Path, name: str) -> Path:
    if not path.is_dir() and (path.exists() or path.suffix.lower() in _NOT_FOLDERS):
        raise ConfigError(f"{name}: {path} is the name of a file; name the folder of the results.")
    return path
