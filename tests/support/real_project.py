"""Settings under which the real model is asked, small enough for two busy cores."""

CONTEXT_TOKENS = 4096
SETTINGS = """\
completion_models:
  default_completion_model:
    model_provider: openai
    model: smollm2
    api_base: BASE
    api_key: none-needed
    retry: {type: immediate, max_retries: 2}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 384}
vector_store: {vector_size: 384}
chunking: {type: tokens, size: 80, overlap: 10, encoding_model: o200k_base}
extract_graph: {entity_types: [person, place], max_gleanings: 0}
concurrent_requests: 2
local_search: {max_context_tokens: 300}
basic_search: {max_context_tokens: 300}
tog_search:
  max_context_tokens: 300
  depth: 1
  width: 2
  max_relations_per_entity: 3
  max_answer_tokens: 60
"""
EVALUATION = {
    "dataset": {"path": "questions.json"},
    "indexes": {"clock": "clock"},
    "methods": ["tog", "basic"],
    "metrics": ["correctness", "completeness"],
    "max_output_tokens": 40,
    "judge": {"max_output_tokens": 40},
    "concurrency": 4,  # more than the server has places, so that calls wait for it
    "timeout_s": 400,
}
