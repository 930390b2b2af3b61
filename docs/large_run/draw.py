"""Draw the questions and lay out the three projects of the run in a FOLDER that you name.

    python docs/large_run/draw.py FOLDER [MUSIQUE]

MUSIQUE is the multi-hop set as benchmarks/mixture.py reads it; without it there are two projects.
Each has vectors of all-MiniLM-L6-v2, from the address of benchmarks/minilm.py (port 8019), asks
serve.py beside this file at port 8198, and is judged by another one at port 8197.
"""

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
CLONE = HERE.parents[1]
sys.path.insert(0, str(CLONE / "benchmarks"))

from mixture import Embedder, write_project  # noqa: E402
from think import merged  # noqa: E402

FILMS, ISLANDS = ("tt0097576", "tt0102798", "tt2278388"), CLONE / "examples/archipelago"
METHODS = ["tog", "ppr", "bm25", "local", "basic", "agentic", "closed_book"]
MODELS = {  # judged elsewhere than answered: what judges sees the accepted answers
    name: {
        "model_provider": "openai",
        "model": model,
        "api_key": "none-needed",
        "api_base": f"http://127.0.0.1:{port}/v1",
    }
    for name, model, port in (
        ("default_completion_model", "large", 8198),
        ("judge", "large-judge", 8197),
    )
}
Json = dict[str, Any]


def lay_out(folder: Path, questions: list[Json], keys: list[str], n_tokens: int) -> None:
    """Write a run's questions and configuration beside its projects."""
    text = json.dumps(questions, indent=1, ensure_ascii=False) + "\n"
    (folder / "questions.json").write_text(text, encoding="utf-8")
    config: Json = {"dataset": {"path": "questions.json"}, "indexes": {key: key for key in keys}}
    config |= {"methods": METHODS, "metrics": ["correctness"], "judge": {"model": "judge"}}
    terms = {"response_type": "One sentence", "max_context_tokens": n_tokens}
    config |= {"equal_terms": terms, "concurrency": 1000}
    config |= {"timeout_s": 72000, "output": {"dir": "results"}}
    (folder / "eval_config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def ask_large(project: Path) -> None:
    """Have a project's searches ask serve.py; its graph is made by the embedded models."""
    path = project / "settings.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    embedded = settings["completion_models"]["default_completion_model"]
    settings["completion_models"] = {**MODELS, "embedded": embedded}
    for section in ("extract_graph", "summarize_descriptions", "community_reports"):
        settings[section] = {**settings.get(section, {}), "completion_model_id": "embedded"}
    minilm = {"model_provider": "openai", "model": "all-MiniLM-L6-v2", "api_key": "none"}
    minilm["api_base"] = "http://127.0.0.1:8019/v1"
    settings["embedding_models"] = {"default_embedding_model": minilm}
    settings["embed_text"] = {"batch_size": 16}
    settings["vector_store"] = {**settings["vector_store"], "vector_size": 384}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def draw_texts(rng: random.Random, run: Path) -> None:
    """Draw 24 questions of the archipelago and 4 of each film."""
    islands = json.loads((ISLANDS / "questions.json").read_text(encoding="utf-8"))
    drawn = [{**row, "imdb_key": "archipelago"} for row in rng.sample(islands, 24)]
    every = json.loads((CLONE / "eval/qa_eval.json").read_text(encoding="utf-8"))
    films = [rng.sample([row for row in every if row["imdb_key"] == film], 4) for film in FILMS]
    for name, key, source in (
        ("archipelago", "archipelago", ISLANDS),
        *(("films", film, CLONE / film) for film in FILMS),
    ):
        project = run / name / key
        shutil.copytree(source / "input", project / "input")
        shutil.copy(source / "settings.yaml", project)
        ask_large(project)
    lay_out(run / "archipelago", drawn, ["archipelago"], 1500)
    by_turns = [row for rows in zip(*films, strict=True) for row in rows]
    lay_out(run / "films", by_turns, list(FILMS), 3000)


def draw_musique(rng: random.Random, run: Path, file: Path) -> None:
    """Draw 24 questions of MuSiQue, four passages to a text unit."""
    data = json.loads(file.read_text(encoding="utf-8"))
    project = run / "musique" / "musique"
    project.parent.mkdir(parents=True)
    embedder = Embedder("all-MiniLM-L6-v2", "http://127.0.0.1:8019/v1")
    write_project(project, merged(data["passages"], 4), embedder)
    ask_large(project)
    drawn = [
        {
            "id": f"musique-{place:03}",
            "imdb_key": "musique",
            "question": data["questions"][place]["q"],
            "answer": data["questions"][place]["a"],
            "evidence": [data["passages"][at] for at in data["questions"][place]["gold"]],
        }
        for place in rng.sample(range(len(data["questions"])), 24)
    ]
    lay_out(run / "musique", drawn, ["musique"], 3000)


if __name__ == "__main__":
    rng = random.Random(2026)
    folder = Path(sys.argv[1])
    draw_texts(rng, folder)
    if sys.argv[2:]:
        draw_musique(rng, folder, Path(sys.argv[2]))
