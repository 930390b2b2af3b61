"""Where the results of an evaluation are."""

from dataclasses import dataclass
from pathlib import Path

from graphrag.eval.config import EvaluationConfig


@dataclass(frozen=True, slots=True)
class Place:
    """Where the results are, as the flags name it: ``output``, else what the configuration says."""

    root: Path = Path()
    config: Path | None = None
    output: Path | None = None

    def store_path(self) -> Path:
        """Return the eval.db of the output folder.

        Raises
        ------
        ConfigError
            If the configuration is needed and can't be read.
        """
        folder = self.read_config().output_dir if self.output is None else self.output
        return folder / "eval.db"

    def has_config(self) -> bool:
        """Whether a configuration is there, or one was named."""
        return self.config is not None or (self.root / "eval_config.yaml").is_file()

    def read_config(self) -> EvaluationConfig:
        """Return the configuration; raises ConfigError when it can't be read."""
        path = self.config or self.root / "eval_config.yaml"
        return EvaluationConfig.from_yaml(path, self.root)
