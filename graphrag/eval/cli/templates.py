"""The files that ``graphrag eval init`` writes."""

CONFIG_TEMPLATE = """\
# What `graphrag eval` runs. Paths are relative to this folder.

dataset:
  # A JSON list, JSON lines (.jsonl) or CSV. Each row has `question` and `answer`; optional are
  # `id`, `evidence`, `tags` and, when several indexes are configured, `imdb_key`, the key of the
  # index that is asked. Example of a JSON row:
  #   {{"id": "q1", "question": "Who wrote the report?", "answer": "The audit office"}}
  path: {dataset}

indexes: # key -> GraphRAG project
  {key}: {project}

methods: [tog, local, basic] # also: global, drift
metrics: [correctness, faithfulness, relevance, completeness]

judge:
  model: null # null: the default completion model of the project's settings.yaml
  temperature: 0.0
  max_retries: 2 # for replies that can't be read
  max_output_tokens: 1000 # of each reply

output:
  dir: eval/results
  save_intermediate: true # keep every response and verdict as it arrives; needed for --resume

concurrency: 8 # model calls in flight at the same time
timeout_s: 300 # for one search; waiting for its turn is not counted
max_output_tokens: 2000 # of each reply to a method's call
thresholds: {{}} # e.g. {{correctness: 0.6}}: a lower mean of any method ends with exit code 100
"""

DATASET_TEMPLATE = "id,question,answer,evidence,tags\n"
