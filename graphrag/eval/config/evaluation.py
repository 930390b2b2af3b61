"""Reads and checks the settings of an evaluation from eval_config.yaml."""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import to_jsonable_python

from graphrag.config.models.strict_section import as_sentence, explain_first, nearest
from graphrag.config.settings_files import read_yaml
from graphrag.eval.config.gone_keys import GoneKeyWarning, take_out_gone
from graphrag.eval.config.sections import (
    CONTROLS,
    DatasetSettings,
    EqualTerms,
    FrozenSection,
    JudgeSettings,
    MeasuresSettings,
    Metric,
    OutputSettings,
    SearchMethod,
    Variant,
)
from graphrag.eval.errors import ConfigError
from graphrag.eval.types.metric_definitions import BUILT_IN, DEFAULT_METRICS, is_graded
from graphrag.eval.types.own_code import is_declared, load_parts
from graphrag.query.client.rate_limit import DEFAULT_PATIENCE_S
from graphrag.query.methods import BUDGET, has_budget
from graphrag.text.cli_hints import config_name, eval_line
from graphrag.text.input_files import MOST_WRITTEN_BYTES, read_input

DEFAULT_METHODS: Sequence[str] = ["tog", "local", "basic"]
_METHODS: tuple[str, ...] = (*get_args(SearchMethod), *CONTROLS)
IN_PLACE_OF = {
    "dataset_path": ("dataset", "path"),
    "index_roots": ("indexes", ""),
    "output_dir": ("output", "dir"),
    "save_intermediate": ("output", "save_intermediate"),
}
"""Setting under its own name -> its section, and its key there, if any."""


MethodName = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(_METHODS)},
                {"type": "string"},
                {"type": "object", "required": ["name"]},
            ]
        }
    ),
]
"""The name of a method; in the file a full variant may replace it."""


def _add_form(form: dict[str, JsonValue]) -> Callable[[JsonDict], None]:
    """Return a function that adds to a setting's schema a form that only the file may have."""

    def add(schema: JsonDict) -> None:
        own = {key: schema.pop(key) for key in ("anyOf", "items", "type") if key in schema}
        forms = own.pop("anyOf", [own])
        schema["anyOf"] = [*cast("list[JsonValue]", forms), form]

    return add


def _add_other_names(schema: JsonDict) -> None:
    """Add the settings of ``IN_PLACE_OF`` to the schema, and remove ``root``."""
    fields = cast("JsonDict", schema["properties"])
    del fields["root"]
    for name, (section, key) in IN_PLACE_OF.items():
        fields[name] = {"description": f"In place of {section}{f'.{key}' if key else ''}."}


class EvaluationConfig(FrozenSection):
    """The settings of an evaluation: its questions, indexes, methods and judge.

    Notes
    -----
    You may give ``dataset_path``, ``index_roots``, ``output_dir`` and ``save_intermediate`` instead
    of the keys that they replace, and read them in either case. A setting that is given both ways
    is refused.

    Examples
    --------
    >>> config = EvaluationConfig(dataset_path="qa.json", index_roots={"mine": "my_project"},
    ...                           methods=["tog", "basic"])
    >>> config.indexes
    {'mine': 'my_project'}
    """

    model_config = ConfigDict(json_schema_extra=_add_other_names)

    dataset: DatasetSettings = DatasetSettings()
    indexes: dict[str, str] = Field(default_factory=dict[str, str])
    """Key in the dataset -> project folder, relative to the root."""
    methods: list[MethodName] = Field(default_factory=lambda: list(DEFAULT_METHODS), min_length=1)
    """tog, ppr, local, basic, bm25, hybrid, agentic, global, drift, the controls closed_book and
    oracle, names of variants, and functions as ``module:function``. They are reported in this
    order. In the file an entry may also be a variant itself: ``{name: tog-wide, method: tog, width:
    5}``."""
    variants: dict[str, Variant] = Field(default_factory=dict[str, Variant])
    """Name -> variant."""
    equal_terms: EqualTerms | None = Field(
        default=None, json_schema_extra=_add_form({"type": "boolean"})
    )
    """One form of answer and one context budget for all methods; ``true`` in the file means
    the defaults. None: each method keeps its own."""
    output: OutputSettings = OutputSettings()
    judge: JudgeSettings = JudgeSettings()
    metrics: tuple[Metric, ...] = Field(
        default=DEFAULT_METRICS, json_schema_extra=_add_form({"const": "none"})
    )
    """What the judge is asked: by default correctness, faithfulness, relevance and completeness.
    You may add ``sufficiency``, and judges of your own as ``module:object``, which are known by
    their own names elsewhere. Empty, or ``none`` in the file: no judge is asked, and only measures
    that need none are computed."""
    trials: int = Field(default=1, ge=1)
    """How often every search is repeated as a whole, >= 1."""
    concurrency: int = Field(default=8, ge=1)
    """Model calls in flight at the same time, all models and methods together, >= 1."""
    workers: int = Field(default=1, ge=1)
    """Processes that search and judge, 1 to ``concurrency``. 1: only this one; more: Ray's. They
    share ``concurrency`` and the configured rates."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Seconds until a search is given up, > 0; waiting for the run's own limit or for a configured
    rate does not count. A single request, also of the judge, is given up and sent again after half
    of this, but at least 60; a model's ``timeout`` in its ``call_args`` takes precedence."""
    patience_s: float = Field(default=DEFAULT_PATIENCE_S, gt=0)
    """Seconds, > 0, that a run waits for a service that is down; also the longest wait that a
    service may ask for. Then the run stops, and you can resume it."""
    max_output_tokens: int = Field(default=2000, ge=16)
    """The most tokens of each reply to a method's call, >= 16; tog and ppr have settings of their
    own. A model that is known to think before it answers gets 25,000 more. ``max_tokens`` in a
    model's ``call_args`` takes precedence."""
    measures: MeasuresSettings = MeasuresSettings()
    equivalence_margin: float = Field(default=0.05, gt=0, lt=1)
    """Methods count as equivalent below this difference of their means, in (0, 1)."""
    thresholds: dict[Metric, NonNegativeFloat] = Field(default_factory=dict[Metric, float])
    """Metric -> the smallest mean that you accept of any method, 0 to 1, or within the limits of a
    judge with its own scale. A run below one of them ends with exit code 100."""
    root: Path = Field(default=Path(), exclude=True)
    """Folder that the paths are relative to; not part of the file."""

    other_names = IN_PLACE_OF

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            dataset_path: str | Path = ...,
            index_roots: Mapping[str, str | Path] = ...,
            methods: Sequence[str | Mapping[str, object]] = ...,
            output_dir: str | Path = ...,
            save_intermediate: bool = ...,
            **sections: object,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _name_variants(cls, values: object, info: ValidationInfo) -> object:
        """Move variants out of the list of methods, so that methods are names."""
        if not isinstance(values, Mapping):
            return values
        settings = _put_into_sections(_as_written(cast("Mapping[str, object]", values)))
        settings, gone = take_out_gone(settings)
        for sentence in gone:
            warnings.warn(sentence, GoneKeyWarning, stacklevel=4)
        methods = settings.get("methods")
        variants: object = settings.get("variants") or {}
        if isinstance(methods, list | tuple):
            entries = cast("Sequence[object]", methods)
            settings["methods"] = [_name_of(entry) for entry in entries]
            inline = [cast("dict[str, object]", e) for e in entries if isinstance(e, dict)]
            named = {e["name"]: {k: v for k, v in e.items() if k != "name"} for e in inline}
            own = cast("Sequence[str]", info.context or ())
            specs = [e for e in entries if isinstance(e, str) and ":" in e and e not in own]
            functions = {spec: {"function": spec} for spec in specs}
            if isinstance(variants, Mapping):  # else the section is refused
                settings["variants"] = {
                    **functions,
                    **cast("Mapping[str, object]", variants),
                    **named,
                }
        if settings.get("metrics") == "none":
            settings["metrics"] = ()
        settings = _put_graded_aside(_load_own(settings))
        if isinstance(settings.get("equal_terms"), bool):
            settings["equal_terms"] = {} if settings["equal_terms"] else None
        return settings

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> "EvaluationConfig":
        for problem in self._problems(cast("Sequence[str]", info.context or ())):
            raise ValueError(problem)
        return self

    def _problems(self, own_methods: Sequence[str]) -> Iterator[str]:
        yield from self._wrong_methods(own_methods)
        yield from self._wrong_variants()
        for name, chosen in (("methods", self.methods), ("metrics", self.metrics)):
            if len(set(chosen)) != len(chosen):
                yield f"{name} names one twice: {', '.join(chosen)}"
        if self.workers > self.concurrency:
            yield (
                f"workers: {self.workers} workers share a concurrency of {self.concurrency}, and "
                "each needs at least one of it; raise concurrency or lower workers"
            )
        for metric, least in self.thresholds.items():
            if metric not in (*self.metrics, *self.judge.graded):
                yield f"thresholds.{metric} is set, but metrics leaves {metric} out"
            elif least > 1 and metric in self.metrics:
                yield f"thresholds.{metric}: must be less than or equal to 1, not {least:g}"

    def _wrong_methods(self, own_methods: Sequence[str]) -> Iterator[str]:
        choices = (*_METHODS, *self.variants, *own_methods)
        for name in self.methods:
            if name not in choices and not is_declared("methods", name):
                near, known = nearest(name, choices) or ".", ", ".join(choices)
                yield f"methods: unknown name {name!r}{near} Known: {known}"
        for pair in self.judge.pairs(self.methods):
            if pair[0] == pair[1] or not set(pair) <= set(self.methods):
                yield f"judge.pairwise: {' and '.join(pair)} are not two of the methods"

    def _wrong_variants(self) -> Iterator[str]:
        for name, variant in self.variants.items():
            if name in _METHODS:
                yield f"variants: {name!r} is the name of a method; choose another"
            if variant.index is not None and self.indexes:  # a runner may be handed its indexes
                for key in (key for key in variant.index if key not in self.indexes):
                    near = nearest(key, self.indexes)
                    yield f"variants.{name}.index: indexes has no key {key!r}{near}"
                if missing := [key for key in self.indexes if key not in variant.index]:
                    yield (
                        f"variants.{name}.index names no project for {', '.join(missing)}; name "
                        "one for every key of indexes"
                    )

    @classmethod
    def from_yaml(
        cls, path: Path | str, root: Path | str | None = None, *, allow_outside: bool = False
    ) -> "EvaluationConfig":
        """Read a configuration file.

        ``root`` is the folder that paths are relative to; None: the file's folder.
        ``allow_outside``: whether ``output.dir`` may be outside the root. Raises ConfigError, which
        names the key, if a value is not allowed; also if the file is missing or not YAML.

        Examples
        --------
        >>> config = EvaluationConfig.from_yaml(path="my_project/eval_config.yaml")
        >>> config.output_dir
        'my_project/eval/results'
        """
        file = Path(path)
        values = read_written(file, str(file), _describe_missing(file))
        if values is not None and not isinstance(values, dict):
            raise ConfigError(f"{file} must contain keys and values, not {type(values).__name__}.")
        settings = cast("dict[str, object]", values or {})
        if "root" in settings:
            raise ConfigError(f"{file}: unknown key 'root'; pass --root instead.")
        config = parse_config({**settings, "root": Path(root) if root else file.parent}, str(file))
        if not allow_outside:
            check_below(config.output_folder, config.root, f"{file}: output.dir")
        return config

    def to_dict(self) -> dict[str, object]:
        """Return the settings as JSON-ready values, ``root`` as an absolute path."""
        return {**self.model_dump(mode="json"), "root": str(self.root.absolute())}

    @property
    def dataset_path(self) -> str:
        """The dataset file as given, joined to ``root`` unless that is the working directory."""
        return self._locate(self.dataset.path)

    @property
    def index_roots(self) -> dict[str, str]:
        """Key -> project folder, as a path like :attr:`dataset_path`."""
        return {key: self._locate(folder) for key, folder in self.indexes.items()}

    @property
    def output_dir(self) -> str:
        """The folder of the results, as a path like :attr:`dataset_path`."""
        return self._locate(self.output.dir)

    @property
    def save_intermediate(self) -> bool:
        """Whether every response and verdict is kept in eval.db as it arrives."""
        return self.output.save_intermediate

    @property
    def output_folder(self) -> Path:
        """The folder of the results, below ``root``."""
        return self.root / self.output.dir

    @property
    def store_path(self) -> Path:
        """The eval.db that keeps the runs, in the folder of the results."""
        return self.output_folder / "eval.db"

    @property
    def judges_claims(self) -> bool:
        """Whether faithfulness is judged claim by claim."""
        return self.judge.faithfulness.by == "claim" and "faithfulness" in self.metrics

    def budget_setting(self, name: str, method: str) -> str | None:
        """Return the setting that limits the context of a search; None if it is the project's.

        ``name`` is the name that the search has in this configuration, such as a variant's;
        ``method`` is the search itself.
        """
        variant = self.variants.get(name)
        if not has_budget(method):
            return None
        if self.equal_terms is not None and self.equal_terms.max_context_tokens is not None:
            setting = f"equal_terms.{BUDGET}"
        elif variant is not None and BUDGET in variant.changes:
            setting = f"{BUDGET} of {name}"
        else:
            return None
        return f"{setting} in {config_name()}"

    def project_folders(self) -> dict[str, Path]:
        """Return key -> project folder, below ``root``."""
        return {key: self.root / folder for key, folder in self.indexes.items()}

    def index_of(self, key: str, method: str) -> str:
        """Return the name of the index that a method asks for questions of a key.

        That is the key. For a variant with an ``index`` of its own, it is that folder as it is
        first written, or, if a key of ``indexes`` has this folder, that key.
        """
        variant = self.variants.get(method)
        folder = None if variant is None or variant.index is None else variant.index.get(key)
        if folder is None:
            return key
        root = self.root.resolve()
        resolved = (root / folder).resolve()
        for own, project in self.indexes.items():
            if (root / project).resolve() == resolved:
                return own
        written = (f for v in self.variants.values() for f in (v.index or {}).values())
        name = PurePath(next(f for f in written if (root / f).resolve() == resolved)).as_posix()
        return f"./{name}" if name in self.indexes else name

    def projects(self, keys: Iterable[str] | None = None) -> dict[str, Path]:
        """Return name -> project folder of the indexes that the methods ask, below ``root``.

        ``keys`` are the keys that questions name; None: all.
        """
        asked = self.searches_asked(self.indexes if keys is None else keys)
        return {name: self.root / self.indexes.get(name, name) for name in asked}

    def searches_asked(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """Return name of an index -> methods that search it for questions of these keys.

        Controls search nothing; a user's own methods have their own names.
        """
        asked: dict[str, dict[str, None]] = {}
        for key, name in product(keys, self.methods):
            variant = self.variants.get(name)
            method = variant.method if variant is not None and variant.method else name
            searches = () if method in CONTROLS else (method,)
            asked.setdefault(self.index_of(key, name), {}).update(dict.fromkeys(searches))
        return {name: list(searches) for name, searches in asked.items()}

    def own_projects(self) -> dict[str, Path]:
        """Return name -> project folder of the variants' own indexes."""
        variants = self.variants.items()
        names = [self.index_of(key, v) for v, variant in variants for key in variant.index or ()]
        return {name: self.root / name for name in names if name not in self.indexes}

    def _locate(self, path: str) -> str:
        return path if self.root.resolve() == Path.cwd() else str(self.root / path)


def check_below(folder: Path, root: Path, setting: str, allow: str | None = None) -> None:
    """Raise ConfigError if a settings file, maybe somebody else's, puts results outside the root.

    The path counts as it is written: where a link on this disk leads is its owner's affair.
    ``setting`` is the file and the key that name the folder, ``allow`` a key that allows it. The
    error says how to write there all the same.
    """
    below = Path(os.path.abspath(folder))
    if not below.is_relative_to(os.path.abspath(root)):
        by_key = "" if allow is None else f"set {allow}: true, or "
        raise ConfigError(
            f"{setting}: {below} lies outside of {root.absolute()}; if results are to be written "
            f"there, {by_key}name it with --output."
        )


def _as_written(values: Mapping[str, object]) -> dict[str, object]:
    """Return values in which sections that are models already are as a file would have them."""
    written = dict(values)
    for name, value in values.items():
        if isinstance(value, BaseModel):
            written[name] = value.model_dump(exclude_unset=True)
        elif name == "variants" and isinstance(value, Mapping):
            written[name] = _as_written(cast("Mapping[str, object]", value))
    return written


def _put_into_sections(values: Mapping[str, object]) -> dict[str, object]:
    """Return values in which the settings of ``IN_PLACE_OF`` are where the file has them."""
    settings = dict(values)
    for name, (section, key) in IN_PLACE_OF.items():
        if name not in settings:
            continue
        value: object = to_jsonable_python(settings.pop(name), fallback=lambda other: other)
        before = settings.get(section)
        if key and before is not None and not isinstance(before, Mapping):
            raise ValueError(f"{section} must contain keys and values, not {type(before).__name__}")
        content = cast("Mapping[str, object]", before or {})
        if (key in content) if key else (section in settings):
            raise ValueError(
                f"{name} and {section}{f'.{key}' if key else ''} are one setting; give one of them"
            )
        settings[section] = {**content, key: value} if key else value
    return settings


def _load_own(settings: dict[str, object]) -> dict[str, object]:
    """Load the judges and measures given as ``module:object``, and replace them by their names."""
    root, loaded = Path(str(settings.get("root") or "")), dict(settings)

    def name(kind: Literal["metrics", "measures"], values: object) -> object:
        if not isinstance(values, list | tuple):
            return values
        built_in = BUILT_IN if kind == "metrics" else ()
        return load_parts(kind, cast("Sequence[object]", values), root, built_in)

    if "metrics" in settings:
        loaded["metrics"] = name("metrics", settings["metrics"])
    if isinstance(least := settings.get("thresholds"), Mapping):
        by_name = cast("Mapping[str, object]", least)
        names = load_parts("metrics", by_name, root, BUILT_IN)
        loaded["thresholds"] = dict(zip(names, by_name.values(), strict=True))
    lists: tuple[tuple[str, str, Literal["metrics", "measures"]], ...] = (
        ("judge", "graded", "metrics"),
        ("measures", "further", "measures"),
    )
    for section, key, kind in lists:
        values = settings.get(section)
        if isinstance(values, Mapping) and key in values:
            content = cast("Mapping[str, object]", values)
            loaded[section] = {**content, key: name(kind, content[key])}
    return loaded


def _put_graded_aside(settings: dict[str, object]) -> dict[str, object]:
    """Move judges with their own scale from the metrics, which are scored 0 or 1, to the judge."""
    metrics = settings.get("metrics")
    if not isinstance(metrics, list | tuple):
        return settings
    names = cast("Sequence[object]", metrics)
    graded = [name for name in names if is_graded(name)]
    judge: object = settings.get("judge") or {}
    if not graded or not isinstance(judge, Mapping):
        return settings
    section = cast("Mapping[str, object]", judge)
    joined = dict.fromkeys([*cast("Sequence[object]", section.get("graded") or ()), *graded])
    rest = [name for name in names if name not in graded]
    return {**settings, "metrics": rest, "judge": {**section, "graded": tuple(joined)}}


def _name_of(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    name = cast("dict[str, object]", entry).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"methods: a variant needs a name, which {entry} lacks")
    return name


def read_written(file: Path, name: str, missing: str, is_json: bool = False) -> object:
    """Return the content of a YAML or JSON file that a person wrote.

    Raises ConfigError, which calls the file ``name`` and says what is wrong; ``missing`` is the
    message if there is no file.
    """
    try:
        text = read_input(file, MOST_WRITTEN_BYTES).decode("utf-8-sig")
        return json.loads(text) if is_json else read_yaml(text)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(missing) from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8; save it so"
        raise ConfigError(f"{name} can't be read: {why}.") from error
    except (yaml.YAMLError, json.JSONDecodeError, RecursionError) as error:
        form = "JSON" if is_json else "YAML"
        raise ConfigError(f"{name} is not valid {form}: {error}.") from error


def parse_config(
    values: Mapping[str, object], source: str, own_methods: Sequence[str] = ()
) -> EvaluationConfig:
    """Make a configuration of values and check it; a ConfigError names the key.

    ``own_methods`` are names of methods that a program passed to its runner.
    """
    try:
        return EvaluationConfig.model_validate(values, context=own_methods)
    except ValidationError as error:
        raise ConfigError(as_sentence(f"{source}: {explain_first(error, hints=True)}")) from error


def _describe_missing(file: Path) -> str:
    if file.name != "eval_config.yaml":  # ``init`` writes no other file
        return f"{file} does not exist; check --config."
    if file.parent.is_file():
        return f"{file.parent} is a file; name its folder by --root."
    if not file.parent.is_dir():
        return f"The folder {file.parent} does not exist; check --root."
    return f"{file} does not exist; write one with: {eval_line('init', '--root', file.parent)}"
