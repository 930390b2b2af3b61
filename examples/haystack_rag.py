"""A plain RAG made with Haystack as a method of ``graphrag eval``.

Haystack splits the documents of a project, finds passages by BM25 and builds the prompt. The
answer is written by the model that basic search would ask, so that the two differ in retrieval
alone, and its calls are counted as theirs are. The entry in the eval_config.yaml of the folder
above is ``{name: haystack, function: "examples.haystack_rag:answer"}``, beside ``basic``.

Needs Haystack: ``pip install "haystack-ai>=3.4,<4"``. Nothing is sent to Haystack.
"""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")  # read when haystack is imported

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from graphrag.config.project_settings import read_settings
from graphrag.eval import EvaluationConfig
from graphrag.eval.runner import MethodAnswer
from graphrag.query.client.models import open_completion

ROOT = Path(__file__).parent.parent
WORDS, OVERLAP, TOP_K = 200, 30, 10  # about as much text as basic search reads
PROMPT = """Answer the question from the sources below and from nothing else, in one paragraph.
After each statement cite the sources it rests on as [Data: Sources (ids)]. If they do not hold
the answer, say so.

-----Sources-----
id|text
{% for document in documents %}{{ loop.index }}|{{ document.content.split() | join(" ") }}
{% endfor %}"""


@dataclass(frozen=True)
class System:
    """Haystack's pipeline over a project's documents, and the project's model."""

    pipeline: Pipeline
    model: Any


async def answer(question: str, index: str) -> MethodAnswer:
    """Answer a question about the documents of an index of eval_config.yaml."""
    system = open_system(index)
    inputs = {"retriever": {"query": question}, "prompt": {"question": question}}
    made = await system.pipeline.run_async(inputs, include_outputs_from={"retriever"})
    messages = [
        {"role": message.role.value, "content": message.text}
        for message in made["prompt"]["prompt"]
    ]
    reply = await system.model.completion_async(messages=messages)
    contexts = tuple(document.content for document in made["retriever"]["documents"])
    return MethodAnswer(str(reply.content), contexts)


@cache
def open_system(index: str) -> System:
    """Split and index a project's texts when the first question about it is asked."""
    config = EvaluationConfig.from_yaml(ROOT / "eval_config.yaml")
    project = read_settings(config.project_folders()[index])
    texts = sorted(Path(project.input_storage.base_dir).glob("*.txt"))
    whole = [Document(content=path.read_text(encoding="utf-8")) for path in texts]
    splitter = DocumentSplitter(split_by="word", split_length=WORDS, split_overlap=OVERLAP)
    store = InMemoryDocumentStore()
    store.write_documents(splitter.run(documents=whole)["documents"])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=TOP_K))
    pipeline.add_component(
        "prompt",
        ChatPromptBuilder(
            template=[ChatMessage.from_system(PROMPT), ChatMessage.from_user("{{ question }}")],
            required_variables="*",
        ),
    )
    pipeline.connect("retriever.documents", "prompt.documents")
    model = project.get_completion_model_config(project.basic_search.completion_model_id)
    return System(pipeline, open_completion(model))
