"""Files of each format that `graphrag eval import` reads, by hand after their published schemas."""

import json

TOWER = ["The Brass Tower stands in Oldmere. ", " Ines Vale built it in 1871."]
VALE = ["Ines Vale was born in Port Sorrel.", " She studied under Tom Arden."]
MILL = ["Arden/Mill is a flour mill."]
QUESTION = "Where was the builder of the Brass Tower born?"
HOTPOT = {
    "_id": "h1",
    "question": QUESTION,
    "answer": "Port Sorrel",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Brass Tower", 1], ["Ines Vale", 0]],
    "context": [["Brass Tower", TOWER], ["Ines Vale", VALE], ["Arden/Mill", MILL]],
}
PASSAGES = [(title, " ".join(text.strip() for text in texts)) for title, texts in HOTPOT["context"]]
MUSIQUE = {
    "id": "2hop__17_23",
    "paragraphs": [
        {"idx": i, "title": title, "paragraph_text": text, "is_supporting": i < 2}
        for i, (title, text) in enumerate(PASSAGES)
    ],
    "question": QUESTION,
    "question_decomposition": [{"id": 17}, {"id": 23}],
    "answer": "Port Sorrel",
    "answer_aliases": ["Sorrel"],
    "answerable": True,
}
ARTICLES = [
    {"title": title, "body": text, "source": "The Gazette", "published_at": "2023-11-02"}
    for title, text in PASSAGES
]
MULTIHOP = [
    {
        "query": "Which town of birth did The Gazette report for the builder of the tower?",
        "answer": "Port Sorrel",
        "question_type": "inference_query",
        "evidence_list": [
            {"title": "Brass Tower", "fact": "Ines Vale built it in 1871."},
            {"title": "Ines Vale", "fact": "Ines Vale was born in Port Sorrel."},
        ],
    },
    {
        "query": "Who painted the tower?",
        "answer": "Insufficient information.",
        "question_type": "null_query",
        "evidence_list": [],
    },
]
BENCH = [
    {
        "id": "Novel-1",
        "source": "Novel-7",
        "question": QUESTION,
        "answer": "Port Sorrel",
        "question_type": "Complex Reasoning",
        "evidence": ["Ines Vale was born in Port Sorrel.", "Vale is the tower's builder"],
        "evidence_relations": "Ines Vale, born in, Port Sorrel",
    }
]
CORPUS = {"corpus_name": "Novel-7", "context": " ".join(text for _, text in PASSAGES)}
_NOVEL = {"context": CORPUS["context"], "label": "fiction", "meta": {"title": "The Lighthouse"}}
ULTRA = [
    {"_id": "u1", "input": QUESTION, "answers": ["Port Sorrel"], "length": 40, **_NOVEL},
    {
        "_id": "u2",
        "input": "Who built the tower?",
        "answers": ["Ines Vale"],
        "length": 40,
        **_NOVEL,
    },
]
QED_QUESTIONS = [
    {"id": "q1", "text": QUESTION, "question_type": "data_local", "references": ["12"]},
    {"id": "q2", "text": "What do the texts say of towers?", "question_type": "data_global"},
]
QED_ASSERTIONS = [
    {
        "question_id": "q1",
        "question_text": QUESTION,
        "assertions": [{"statement": "It names Port Sorrel.", "score": 10, "rank": 1}],
    }
]
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Ines_Vale",
            "paragraphs": [
                {
                    "context": PASSAGES[1][1],
                    "qas": [
                        {
                            "id": "s1",
                            "question": "Where was Ines Vale born?",
                            "answers": [{"text": "Port Sorrel", "answer_start": 22}],
                            "is_impossible": False,
                        },
                        {
                            "id": "s2",
                            "question": "When did Ines Vale die?",
                            "answers": [],
                            "is_impossible": True,
                        },
                    ],
                }
            ],
        }
    ],
}
RAGAS = {
    "user_input": QUESTION,
    "reference": "Port Sorrel",
    "response": "Oldmere",
    "reference_contexts": [f"<{i}-hop>\n\n{PASSAGES[i - 1][1]}" for i in (1, 2)],
    "synthesizer_name": "multi_hop_specific_query_synthesizer",
}
PROMPTFOO = f"""\
prompts: ['{{{{question}}}}']
tests:
  - vars: {{question: '{QUESTION}', context: ['{PASSAGES[0][1]}', '{PASSAGES[1][1]}']}}
    assert:
      - {{type: equals, value: Port Sorrel}}
      - {{type: not-contains, value: Oldmere}}
      - {{type: latency, threshold: 500}}
    metadata: {{kind: bridge}}
  - vars: {{question: 'Who studied under Tom Arden?'}}
    assert: [{{type: llm-rubric, value: It names Ines Vale}}]
"""


def write_samples(folder):
    """Write every sample; return format -> its files."""
    files = {
        "hotpotqa": {"hotpot_dev.json": [HOTPOT]},
        "2wikimultihopqa": {"dev.json": [HOTPOT | {"evidences": [["Ines Vale", "born", "x"]]}]},
        "musique": {"musique_ans_dev.jsonl": MUSIQUE},
        "multihop-rag": {"MultiHopRAG.json": MULTIHOP, "corpus.json": ARTICLES},
        "graphrag-bench": {"novel_questions.json": BENCH, "novel.json": CORPUS},
        "ultradomain": {"fiction.jsonl": "\n".join(map(json.dumps, ULTRA))},
        "benchmark-qed": {"questions.json": QED_QUESTIONS, "assertions.json": QED_ASSERTIONS},
        "squad": {"dev-v2.0.json": SQUAD},
        "ragas": {"testset.jsonl": RAGAS},
        "promptfoo": {"promptfooconfig.yaml": PROMPTFOO},
    }
    written = {}
    for name, contents in files.items():
        (folder / name).mkdir(parents=True)
        for file, content in contents.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / name / file).write_text(text, encoding="utf-8")
        written[name] = [folder / name / file for file in contents]
    return written
