"""``graphrag eval init``: a configuration, its schemas and a dataset template beside a project."""

import json
import re
from pathlib import Path

from graphrag.command_lines import eval_line
from graphrag.config.settings_files import SettingsError, find_settings
from graphrag.eval.cli.command import Quiet
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, say
from graphrag.eval.errors import ConfigError, StoreError

CONFIG_TEMPLATE = """\
# yaml-language-server: $schema={schema}
# What `graphrag eval` runs. Paths are relative to this folder.

dataset:
  # A JSON list, JSON lines (.jsonl) or CSV. Each row has `question` and `answer`, or
  # `expected_sources` or `assertions` in its place; optional are `id`, `evidence`, `tags` and,
  # when several indexes are configured, `imdb_key`, the key of the index that is asked. A JSON row:
  #   {{"id": "q1", "question": "Who wrote the report?", "answer": "The audit office"}}
  path: {dataset}

indexes: # key -> GraphRAG project
  {key}: {project}

methods: [tog, local, basic] # also: ppr, bm25, hybrid, agentic, global, drift
# equal_terms: {{max_context_tokens: 2000}} # one small budget for all, so that retrieval decides
# budgets: [1000, 2000, 4000, 8000] # or each search at several: scores against tokens
metrics: [correctness, faithfulness, relevance, completeness]

judge:
  model: null # null: the default completion model of the project's settings.yaml
  temperature: 0.0
  max_retries: 2 # for replies that can't be read
  max_output_tokens: 1000 # of each reply

measures: # without a model
  cutoffs: [1, 5, 10] # the k of hit rate, recall and precision at k
  criteria: # what each method's means are reported to be above; the exit code is for thresholds
    - {{metric: hit_rate, minimum: 0.80, target: 0.90}}
    - {{metric: mrr, minimum: 0.70, target: 0.85}}
    - {{metric: judge_score, minimum: 0.75, target: 0.85}}
    - {{metric: combined_score, target: 1.20}} # of hit rate, judge's score and tokens

output:
  dir: eval/results
  save_intermediate: true # keep every response and verdict as it arrives; needed for --resume

equivalence_margin: 0.05 # methods whose means are shown to differ by less count as equivalent

concurrency: 8 # model calls in flight at the same time
timeout_s: 300 # for one search; waiting for its turn is not counted
request_timeout_s: null # for one request; null: half of timeout_s, at least 60
patience_s: 300 # how long a service that is down is waited for, until the run stops
max_output_tokens: 2000 # of each reply to a method's call
thresholds: {{}} # e.g. {{correctness: 0.6}}: a lower mean of any method ends with exit code 100
"""

DATASET_TEMPLATE = "id,question,answer,evidence,tags\n"


def init(place: Place, quiet: Quiet = False) -> int:
    """Write a configuration and a dataset template beside a project."""
    root, dataset = place.root, Path("eval") / "questions.csv"
    try:
        find_settings(root)
    except SettingsError as error:
        raise ConfigError(str(error)) from error
    said = write_config(root, dataset)
    said.append(write_template(root / dataset, DATASET_TEMPLATE))
    said.append(f"Next: put questions into {root / dataset}, then: {eval_line('--root', root)}")
    for line in said:
        say(line, quiet=quiet)
    return DONE


def write_config(root: Path, dataset: Path) -> list[str]:
    """Write a project's configuration, unless there is one, and the schemas; say which."""
    from graphrag.eval.config.file_schema import config_schema
    from graphrag.eval.suite.cases import suite_schema

    schema, name = Path("eval") / "eval_config.schema.json", root.resolve().name
    key = name if re.fullmatch(r"[A-Za-z_][\w.-]*", name) else json.dumps(name)  # 2024 is a number
    config = CONFIG_TEMPLATE.format(dataset=dataset, key=key, project=".", schema=schema.as_posix())
    schemas = {schema: config_schema(), schema.with_name("suite.schema.json"): suite_schema()}
    return [write_template(root / "eval_config.yaml", config)] + [
        write_template(root / path, json.dumps(values, indent=2) + "\n", is_template=False)
        for path, values in schemas.items()
    ]


def write_template(path: Path, content: str, is_template: bool = True) -> str:
    """Write a file, a template only where there is none; say which. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x" if is_template else "w", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        return f"{path} exists and is left as it is."
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}.") from error
    return f"Wrote {path}{'' if is_template else ', by which editors check what is written'}."
