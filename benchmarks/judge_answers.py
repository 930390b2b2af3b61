"""How far a judge agrees with 60 labeled answers, by kind.

    python benchmarks/judge_answers.py PROJECT MODEL

PROJECT is a folder with settings.yaml, MODEL one of its completion_models. judge_answers.jsonl
holds ten answers of each kind: right, half right, hedged, overlong, refusing, and of questions that
the documents don't answer, each with the score that docs/judging.md asks for.
The labels were written by a language model, and are no measure of people.
"""

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path

from graphrag.config.load_config import load_config
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.query.client.models import open_completion

ROWS = Path(__file__).with_name("judge_answers.jsonl")


async def judge_rows(judge: LLMJudge) -> dict[str, list[bool | None]]:
    """Return kind -> whether the judge gives each answer's score; None where it gave none."""
    agreed = defaultdict[str, list[bool | None]](list)
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        question, answer = row["question"], row["answer"]
        if row["answerable"]:
            score = (await judge.judge_correctness(question, row["ground_truth"], answer)).score
        else:
            score = (await judge.judge_refusal(question, answer)).score
        agreed[row["kind"]].append(None if score is None else score == row["score"])
    return agreed


def main() -> None:
    """Judge all of them, and print the agreement by kind."""
    project, model = sys.argv[1:]
    config = load_config(Path(project)).get_completion_model_config(model)
    for kind, agreed in asyncio.run(judge_rows(LLMJudge(open_completion(config)))).items():
        print(f"{kind:>13}: {agreed.count(True)} of {len(agreed)}, {agreed.count(None)} unscored")


if __name__ == "__main__":
    main()
