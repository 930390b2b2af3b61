"""The judges' prompts: templates whose fields are filled with JSON, so data stays data."""

from graphrag.eval.judged.discovery import JUDGED_METRICS

CORRECTNESS_PROMPT = JUDGED_METRICS["correctness"].prompt
FAITHFULNESS_PROMPT = JUDGED_METRICS["faithfulness"].prompt
RELEVANCE_PROMPT = JUDGED_METRICS["relevance"].prompt
COMPLETENESS_PROMPT = JUDGED_METRICS["completeness"].prompt
