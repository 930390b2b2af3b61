import pytest

from graphrag.eval.config import gone_keys
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import EqualTerms, JudgeSettings, Variant
from graphrag.eval.errors import ConfigError


def read(tmp_path, text):
    path = tmp_path / "eval_config.yaml"
    path.write_text(text, encoding="utf-8")
    return EvaluationConfig.from_yaml(path)


def test_paths_are_relative_to_the_root_and_an_empty_file_means_the_defaults(tmp_path):
    config = read(tmp_path, "indexes: {a: projects/a}\n")
    assert config.project_folders() == {"a": tmp_path / "projects" / "a"}
    config = read(tmp_path, "")
    assert config.output_folder == tmp_path / "eval" / "results"
    assert config.dataset_path == str(tmp_path / "eval" / "qa_eval.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metods: [tog]", "unknown key 'metods'; did you mean 'methods'"),
        ("judge: {modle: x}", "judge: unknown key 'modle'; did you mean 'model'"),
        ("methods: [tgo]", "unknown name 'tgo'; did you mean 'tog'"),
        ("methods: []", "methods"),
        ("methods: [tog]\nvariants: [wide]", "variants: .*dictionary"),
        ("methods: [tog, tog]", "methods names one twice"),
        ("concurrency: 0", "concurrency"),
        ("timeout_s: -1", "timeout_s"),
        ("timeout_s: .inf", "timeout_s"),
        ("measures: {alpha: .inf}", r"measures\.alpha"),
        ("measures: {criteria: [{metric: mrr, minimum: .nan, target: 1}]}", "minimum"),
        ("thresholds: {correctness: 2}", r"thresholds\.correctness: .* less than or equal to 1"),
        ("metrics: [correctness]\nthresholds: {relevance: 0.5}", "metrics leaves relevance out"),
        ("root: /", "unknown key 'root'"),
        ("[1, 2]", "keys and values"),
        (
            "a: [",
            r"eval_config\.yaml is not valid YAML: line 1, column 5: (?!.*unicode string).*\.$",
        ),
        (
            'root: "a\nb: c\n',
            r"line 3, column 1: found unexpected end of stream \(while scanning a quoted scalar, "
            r"line 1, column 7\)\.$",
        ),
        ("a: \x07", r"not valid YAML: line 1: character U\+0007\.$"),
        (
            "judge: {faithfulness: {by: global}}",
            r"judge\.faithfulness\.by: unknown name 'global'; known: 'response' or 'claim'\.$",
        ),
        ("index_rots: {}", r"unknown key 'index_rots'; did you mean 'index_roots'\?"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_sections_made_in_code_mean_what_a_file_would_say():
    values = {"methods": ["local", "wide", "bm25"]}
    written = EvaluationConfig(
        **values,
        equal_terms={"response_type": "List"},
        variants={"wide": {"method": "local", "top_k_entities": 3}},
        judge={"rubric": True},
    )
    made = EvaluationConfig(
        **values,
        equal_terms=EqualTerms(response_type="List"),
        variants={"wide": Variant(method="local", top_k_entities=3)},
        judge=JudgeSettings(rubric=True),
    )

    assert made == written
    assert made.variants["wide"].changes == {"top_k_entities": 3}


def test_a_missing_file_says_how_to_write_one(tmp_path):
    with pytest.raises(ConfigError, match="graphrag eval init"):
        EvaluationConfig.from_yaml(tmp_path / "eval_config.yaml")


def test_the_shipped_configuration_is_valid(project_root):
    config = EvaluationConfig.from_yaml(project_root / "eval_config.yaml")
    assert set(config.indexes) == {"tt0097576", "tt0102798", "tt2278388"}


def test_a_gone_key_is_left_out_with_one_warning_and_the_rest_is_read(tmp_path, monkeypatch):
    gone = {"old": "Gone since 2.0.0; do this.", "judge.older": "Gone since 2.0.0; do that."}
    monkeypatch.setattr(gone_keys, "GONE_KEYS", gone)
    with pytest.warns(gone_keys.GoneKeyWarning) as warned:
        config = read(tmp_path, "old: [1]\njudge: {older: 2, temperature: 0.5}\ntrials: 3\n")
    assert [str(warning.message) for warning in warned] == [
        "old is read no more: Gone since 2.0.0; do this.",
        "judge.older is read no more: Gone since 2.0.0; do that.",
    ]
    assert config == EvaluationConfig(judge={"temperature": 0.5}, trials=3, root=tmp_path)


def test_a_criterion_of_a_gone_measure_is_left_out_with_one_warning(tmp_path):
    criteria = "[{metric: path_edges_exist, minimum: 0.9}, {metric: recall, minimum: 0.5}]"
    with pytest.warns(gone_keys.GoneKeyWarning, match="criterion path_edges_exist") as warned:
        config = read(tmp_path, f"measures: {{criteria: {criteria}, alpha: 3.0}}")
    assert len(warned) == 1
    assert [criterion.metric for criterion in config.measures.criteria] == ["recall"]
    assert config.measures.alpha == 3
