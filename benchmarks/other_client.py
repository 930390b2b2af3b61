"""Judgements by another evaluation library: ``other_client.py LIBRARY URL C CALLS``.

Runs in an environment that holds that library and not this project. A question and four
metrics make four calls to the model, each through the library's own public functions, with as
long a prompt as the other clients' of throughput.py send. Prints one line of JSON, as they do.
"""

import asyncio
import json
import os
import resource
import sys
import time

N_METRICS = 4
CONTEXT = "Marta Quill keeps the lighthouse on Gannet Isle. " * 40
PROMPT = "You grade one response. " * 60 + CONTEXT
QUESTION, ANSWER = "Who repaired the great lamp with Marta Quill?", "Jonas Feld."
_TIMES: dict[str, float] = {}


def begin() -> None:
    """Note that the calls begin."""
    _TIMES["cpu_before"], _TIMES["started"] = time.process_time(), time.perf_counter()


def end(scores: list, calls: int) -> None:
    """Note that the last call has ended; every judgement must have come back."""
    _TIMES["wall"] = time.perf_counter() - _TIMES["started"]
    _TIMES["cpu"] = time.process_time() - _TIMES["cpu_before"]
    given = sum(score is not None for score in scores)
    assert given == calls, f"{given} judgements of {calls}"


def autoevals(url: str, concurrency: int, calls: int) -> None:
    """LLMClassifier.eval_async; it bounds nothing itself, so a semaphore does."""
    from autoevals import LLMClassifier
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    judges = [
        LLMClassifier(
            name=f"metric{n}",
            prompt_template=PROMPT + "\n{{input}} {{output}}",
            choice_scores={"Y": 1, "N": 0},
            model="gpt-4o",
            use_cot=True,
            client=client,
        )
        for n in range(N_METRICS)
    ]

    async def run() -> list:
        places = asyncio.Semaphore(concurrency)

        async def one(judge, n: int):
            async with places:
                found = await judge.eval_async(output=ANSWER, input=f"{QUESTION} ({n})")
                return found.score

        begin()
        work = (one(judge, n) for n in range(calls // N_METRICS) for judge in judges)
        return await asyncio.gather(*work)

    end(asyncio.run(run()), calls)


def pydantic_evals(url: str, concurrency: int, calls: int) -> None:
    """Dataset.evaluate with four LLMJudge; a case's judges run side by side."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import LLMJudge

    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=url, api_key="none"))
    names = [f"metric{n}" for n in range(N_METRICS)]
    judges = [
        LLMJudge(
            rubric=PROMPT,
            model=model,
            include_input=True,
            assertion=False,
            score={"evaluation_name": name, "include_reason": True},
        )
        for name in names
    ]
    cases = [Case(name=str(n), inputs=f"{QUESTION} ({n})") for n in range(calls // N_METRICS)]
    dataset = Dataset(name="throughput", cases=cases, evaluators=judges)

    async def answer(_: str) -> str:
        return ANSWER

    begin()
    report = dataset.evaluate_sync(answer, max_concurrency=concurrency // N_METRICS, progress=False)
    scores = [case.scores.get(name) for case in report.cases for name in names]
    end(scores, calls)


def inspect_ai(url: str, concurrency: int, calls: int) -> None:
    """eval() with four model_graded_qa scorers over answers that are given."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import model_graded_qa
    from inspect_ai.solver import solver

    model = get_model("openai/gpt-4o", base_url=url, api_key="none", responses_api=False)
    template = PROMPT + "\n{question} {answer} {criterion} {instructions}"

    @solver
    def given():
        async def solve(state, generate):
            state.output = ModelOutput.from_content("given", ANSWER)
            return state

        return solve

    samples = [Sample(f"{QUESTION} ({n})", target="Jonas Feld") for n in range(calls // N_METRICS)]
    # The service says "as the text says" where it is asked for no schema: a grade all the same.
    scorers = [
        model_graded_qa(template, model=model, grade_pattern=r"(text)") for _ in range(N_METRICS)
    ]
    task = Task(dataset=samples, solver=given(), scorer=scorers)
    begin()
    (log,) = eval(
        task,
        model="mockllm/model",
        max_connections=concurrency,
        max_samples=concurrency,
        display="none",
        log_dir=os.path.join(sys.argv[5], "logs"),
        log_level="error",
    )
    assert log.status == "success", log.error
    found = [score.value for sample in log.samples for score in sample.scores.values()]
    end(found, calls)


def deepeval(url: str, concurrency: int, calls: int) -> None:
    """evaluate() with four GEval metrics whose steps are given, each one call."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import GEval
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase

    try:
        from deepeval.test_case import SingleTurnParams as Params
    except ImportError:
        from deepeval.test_case import LLMTestCaseParams as Params

    model = GPTModel(model="gpt-4o", api_key="none", base_url=url)
    names = [f"metric{n}" for n in range(N_METRICS)]
    metrics = [
        GEval(
            name=name,
            evaluation_steps=[PROMPT],
            model=model,
            evaluation_params=[Params.INPUT, Params.ACTUAL_OUTPUT],
        )
        for name in names
    ]
    cases = [
        LLMTestCase(input=f"{QUESTION} ({n})", actual_output=ANSWER)
        for n in range(calls // N_METRICS)
    ]
    begin()
    found = evaluate(
        cases,
        metrics,
        async_config=AsyncConfig(max_concurrent=concurrency // N_METRICS, throttle_value=0),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
        error_config=ErrorConfig(),
    )
    end([m.score for result in found.test_results for m in result.metrics_data or ()], calls)


def ragas(url: str, concurrency: int, calls: int) -> None:
    """evaluate() with four AspectCritic metrics, each one call."""
    from langchain_openai import ChatOpenAI
    from ragas import EvaluationDataset, SingleTurnSample, evaluate
    from ragas.llms import LangchainLLMWrapper
    from ragas.metrics import AspectCritic
    from ragas.run_config import RunConfig

    chat = ChatOpenAI(model="gpt-4o", base_url=url, api_key="none", max_retries=0)
    model = LangchainLLMWrapper(chat)
    names = [f"metric{n}" for n in range(N_METRICS)]
    metrics = [AspectCritic(name=name, definition=PROMPT, llm=model) for name in names]
    samples = [
        SingleTurnSample(user_input=f"{QUESTION} ({n})", response=ANSWER)
        for n in range(calls // N_METRICS)
    ]
    begin()
    found = evaluate(
        EvaluationDataset(samples),
        metrics=metrics,
        show_progress=False,
        run_config=RunConfig(max_workers=concurrency, max_retries=0),
    )
    scores = [row[name] for row in found.scores for name in names]
    end([None if score != score else score for score in scores], calls)


if __name__ == "__main__":
    name, address, places, wanted = sys.argv[1:5]
    globals()[name.replace("-", "_")](address, int(places), int(wanted))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**_TIMES, "peak_mb": peak / 1024}))
