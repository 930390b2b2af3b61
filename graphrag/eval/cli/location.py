"""Where the results of an evaluation are."""

from dataclasses import dataclass
from pathlib import Path

from graphrag.command_lines import say_instead
from graphrag.eval.cli.terminal import open_console
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.store.lookup import LATEST, explain_latest, latest_run, open_store

_NOT_FOLDERS = (".csv", ".db", ".html", ".json", ".jsonl", ".md", ".txt", ".xml", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the results are, as the flags name it: ``output``, else what the configuration says.

    Attributes
    ----------
    root : Path
        Folder that the other two are relative to.
    config : Path or None
        None: eval_config.yaml in the root. One that the root lacks and the working directory
        has is taken from there.
    output : Path or None
        A folder; or a file ``*.json``, which is written besides what goes into the
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
        """The folder that ``output`` names; None when it names a file or nothing.

        Raises
        ------
        ConfigError
            If there is a file in its place, or its name is that of a file.
        """
        if self.output is None or self.file is not None:
            return None
        path = self.root / self.output
        _check_folder(path, "--output")
        return path

    @property
    def config_path(self) -> Path:
        """The configuration file, whether it is there or not."""
        if self.config is None:
            return self.root / "eval_config.yaml"
        path = self.root / self.config
        return self.config if not path.exists() and self.config.exists() else path

    def flags(self) -> tuple[str, ...]:
        """Return the flags that name this place from any folder."""
        flags = ["--root", str(self.root.absolute())]
        if self.config is not None:
            flags += ["--config", str(self.config_path.absolute())]
        if self.output is not None:
            flags += ["--output", str((self.root / self.output).absolute())]
        return tuple(flags)

    def store_path(self) -> Path:
        """Return the eval.db of the output folder, whether it is there or not.

        Raises
        ------
        ConfigError
            If the configuration is needed and can't be read, or there is no folder in it.
        """
        folder = self.folder
        return self.read_config().store_path if folder is None else folder / "eval.db"

    def has_config(self) -> bool:
        """Whether a configuration is there, or one was named."""
        return self.config is not None or self.config_path.is_file()

    def read_config(self) -> EvaluationConfig:
        """Return the configuration with this place's folder of results.

        Raises
        ------
        ConfigError
            If it can't be read, or the results would go into a file.
        """
        folder = self.folder
        config = EvaluationConfig.from_yaml(
            self.config_path, self.root, allow_outside=folder is not None
        )
        if folder is None:
            _check_folder(config.output_folder, "output.dir")
            return config
        output = config.output.model_copy(update={"dir": str(self.output)})
        return config.model_copy(update={"output": output})

    def take_run(self, source: str, suites: bool = False, quiet: bool = False) -> str:
        """Return the id of the run that "latest" is, and say so; any other name as it is.

        Raises
        ------
        UsageError
            If there is no run.
        StoreError
            If another process holds the store.
        """
        if source != LATEST:
            return source
        with open_store(self.store_path()) as store:
            runs = store.runs()
        if not runs:
            return source
        taken = latest_run(runs, suites)
        open_console(stderr=True, quiet=quiet).print(explain_latest(runs, taken), soft_wrap=True)
        say_instead(LATEST, taken.run_id)
        return taken.run_id


def _check_folder(path: Path, name: str) -> None:
    if path.is_dir():
        return
    if path.exists() or path.suffix.lower() in _NOT_FOLDERS:
        msg = f"{name}: {path} is the name of a file; name the folder of the results."
        raise ConfigError(msg)
