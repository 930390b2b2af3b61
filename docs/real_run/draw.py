"""Draw the questions and lay out the project of the real run in a FOLDER that you name."""

import json
import random
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
CLONE = HERE.parents[1]
FILM, ISLANDS = "tt0097576", CLONE / "examples/archipelago"

folder = Path(sys.argv[1])
every = json.loads((CLONE / "eval/qa_eval.json").read_text(encoding="utf-8"))
film = [row for row in every if row.get("imdb_key") == FILM]
islands = json.loads((ISLANDS / "questions.json").read_text(encoding="utf-8"))

rng = random.Random(2026)
film = sorted(rng.sample(film, 60), key=lambda row: row["id"])
islands = sorted(rng.sample(islands, 40), key=lambda row: row["id"])
rng.shuffle(film)
rng.shuffle(islands)
questions = []  # three of the film, two of the islands: a run that stops early has asked both
for n in range(20):
    questions += [{**row, "imdb_key": "film"} for row in film[3 * n : 3 * n + 3]]
    questions += [{**row, "imdb_key": "archipelago"} for row in islands[2 * n : 2 * n + 2]]

for key, source in (("film", CLONE / FILM), ("archipelago", ISLANDS)):
    shutil.copytree(source / "input", folder / key / "input")
    shutil.copy(HERE / "settings.yaml", folder / key)
shutil.copy(HERE / "eval_config.yaml", folder)
text = json.dumps(questions, indent=1, ensure_ascii=False) + "\n"
(folder / "questions.json").write_text(text, encoding="utf-8")
