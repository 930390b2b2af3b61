"""Where the results of an evaluation are, and which of its runs is meant."""

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
class Place:
    """Where the results are, as the flags name it: ``output``, else what the configuration says.

    - ``root``: Folder that the other two are relative to.
    - ``config``: None: eval_config.yaml in the root. One that the root lacks and the working
      directory has is taken from there.
    - ``output``: a folder; of suites also a file ``*.json``, beside what goes into the
      configuration's folder.
    """

    root: Path = Path()
    config: Path | None = None
    output: Path | None = None

    @property
    def file(self) -> Path | None:
        """The file that ``output`` names; None when it names a folder or nothing."""
        if self.output is None:
            return None
        path = self.root / self.output
        return path if path.suffix.lower() == ".json" and not path.is_dir() else None

    @property
    def folder(self) -> Path | None:
        """The folder that ``output`` names, None without; raises ConfigError if it is a file."""
        if self.output is None or self.file is not None:
            return None
        return _checked(self.root / self.output, "--output")

    @property
    def config_path(self) -> Path:
        """The configuration file, whether it is there or not."""
        if self.config is None:
            return self.root / "eval_config.yaml"
        path = self.root / self.config
        return self.config if not path.exists() and self.config.exists() else path

    def flags(self) -> dict[str, str]:
        """Return the flags that name this place from any folder, with their values."""
        flags = {"--root": str(self.root.absolute())}
        if self.config is not None:
            flags["--config"] = str(self.config_path.absolute())
        if self.output is not None:
            flags["--output"] = str((self.root / self.output).absolute())
        return flags

    def store_path(self) -> Path:
        """Return the eval.db of the output folder, whether it is there or not.

        Raises ConfigError if the configuration is needed and can't be read, or there is no folder
        in it.
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
        """Whether a configuration is there, or one was named."""
        return self.config is not None or self.config_path.is_file()

    def read_config(self, writes: bool = True) -> "EvaluationConfig":
        """Return the configuration with this place's folder of results.

        Raises ConfigError if it can't be read, or the results would go into a file. ``writes``:
        whether any do, so that a folder outside of the root is refused.
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
        """Return the id of the run that a name means; "pinned" and a file of rows as they are.

        Says which run "latest" is, see :func:`latest_run`. Raises UsageError if there is no such
        run or file; StoreError if another process holds the store.
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
