"""Lay out in a FOLDER the archipelago twice, with a graph by a language model and one by rules.

    python docs/graph_run/draw.py FOLDER

Both projects ask docs/large_run/serve.py at port 8198, and are judged by another one at port 8197;
their vectors are those of all-MiniLM-L6-v2, from the address of benchmarks/minilm.py (port 8019).
The methods, whose names end with the index that they ask, are in FOLDER/eval_config.yaml.
"""

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ISLANDS = HERE.parents[1] / "examples/archipelago"
BY_MODEL = ("tog", "ppr", "local", "global", "drift")
BY_RULES = ("tog", "ppr", "local")
OF_TEXTS = ("basic", "bm25")  # they read no graph
Json = dict[str, Any]


def model(name: str, port: int) -> Json:
    """Return the entry of a model that serve.py plays."""
    base = f"http://127.0.0.1:{port}/v1"
    return {"model_provider": "openai", "model": name, "api_key": "none-needed", "api_base": base}


def lay_out_project(project: Path, by_rules: bool) -> None:
    """Copy the articles, and name the models in settings.yaml."""
    shutil.copytree(ISLANDS / "input", project / "input")
    settings: Json = yaml.safe_load((ISLANDS / "settings.yaml").read_text(encoding="utf-8"))
    embedded = settings["completion_models"]["default_completion_model"]
    settings["completion_models"] = {
        "default_completion_model": model("large", 8198),
        "judge": model("large-judge", 8197),
    }
    if by_rules:
        settings["completion_models"]["embedded"] = embedded
        for section in ("extract_graph", "summarize_descriptions", "community_reports"):
            settings[section] = {**settings.get(section, {}), "completion_model_id": "embedded"}
    settings["embedding_models"] = {"default_embedding_model": model("all-MiniLM-L6-v2", 8019)}
    settings["embed_text"] = {"batch_size": 16}
    settings["vector_store"] = {"vector_size": 384}
    settings["concurrent_requests"] = 400
    # Else a question of DRIFT asks some sixty times.
    settings["drift_search"] = {"drift_k_followups": 3, "n_depth": 1, "primer_folds": 1}
    path = project / "settings.yaml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def main(folder: Path) -> None:
    """Write the projects, the questions and the configuration."""
    for name in ("model", "rules"):
        lay_out_project(folder / name, by_rules=name == "rules")
    every = json.loads((ISLANDS / "questions.json").read_text(encoding="utf-8"))
    drawn = [{**row, "imdb_key": "archipelago"} for row in random.Random(2026).sample(every, 24)]
    text = json.dumps(drawn, indent=1, ensure_ascii=False) + "\n"
    (folder / "questions.json").write_text(text, encoding="utf-8")
    rules = {"index": {"archipelago": "rules"}}
    config: Json = {
        "dataset": {"path": "questions.json"},
        "indexes": {"archipelago": "model"},
        "methods": [
            *({"name": f"{method}-model", "method": method} for method in BY_MODEL),
            *OF_TEXTS,
            *({"name": f"{method}-rules", "method": method, **rules} for method in BY_RULES),
        ],
        "metrics": ["correctness"],
        "judge": {"model": "judge"},
        "equal_terms": {"response_type": "One sentence", "max_context_tokens": 1500},
        "concurrency": 1000,
        "timeout_s": 72000,
        "output": {"dir": "results"},
    }
    (folder / "eval_config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
