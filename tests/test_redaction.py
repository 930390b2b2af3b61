"""What is taken for a key, and what is left alone."""

import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.text import redaction
from graphrag.text.redaction import (
    REDACTED,
    StreamRedactor,
    know_settings,
    know_variables,
    redact,
    redact_data,
)

KEY = "9f86d081884c7d65"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction._Known, "shown", ())
    monkeypatch.setattr(redaction._Known, "data", ())


@pytest.mark.parametrize(
    "said",
    [
        "litellm.acompletion(model='m', api_key='{}', timeout=3)",
        'litellm.acompletion({{"api_key": "{}"}})',
        "AZURE_API_KEY={} was refused",
        "api-key: {}",
        '{{"body": "{{\\"api_key\\": \\"{}\\"}}"}}',
        "Authorization: Bearer {}",
        "{{'Authorization': 'Basic {}'}}",
        "the header Bearer {}",
        "http://user:{}@host:8080/v1 was asked",
        "postgresql://{}@host/db",
        "https://host/v1beta/models/m:generateContent?key={}&alt=sse",
        "DefaultEndpointsProtocol=https;AccountKey={};EndpointSuffix=core",
        "Incorrect API key provided: sk-{}.",
        "Incorrect API key provided: sk-proj-{}_-a1",
        *(f"it is no {brand}_{{}}zzzz" for brand in ("gsk", "hf")),
        *(f"it is no gh{kind}_{{}}zzzz" for kind in "pousr"),
        "it is no github_pat_{}zzzz",
        *(f"it is no {brand}-{{}}zzzz" for brand in ("xai", "pplx")),
        "it is no AIza{0}{0}",
        "it is no eyJhbGciOiJIUzI1NiJ9.{}.{}",
        "host/x?sig={}",
        "host/x?a=1&code={}",
    ],
)
def test_a_key_is_found_by_its_form(said):
    text = redact(said.format(KEY, KEY))
    assert KEY not in text
    assert REDACTED in text
    assert redact(text) == text


def test_a_key_is_found_by_the_form_of_its_letters_alone():
    assert redact("it is no AKIAIOSFODNN7EXAMPLE") == f"it is no {REDACTED}"


@pytest.mark.parametrize(
    "said",
    [
        "check api_key under completion_models in settings.yaml",
        "completion_models.default.api_key: Field required",
        "api_key=None, password=''",
        "auth_method='api_key', max_tokens=2000",
        "http://127.0.0.1:8080/v1 (openai/gpt-4o)",
        "https://host/@name?page=2",
        "basic search and sk-learn-contrib-extensions",
        "bearer of good news",
        "the secret: he did it",
    ],
)
def test_other_sentences_stay(said):
    assert redact(said) == said


def test_values_of_settings_are_known_in_every_writing():
    know_settings(
        {
            "models": [
                {"api_key": KEY, "call_args": {"extra_headers": {"X-Corp-Auth": 'a"ü 77x'}}}
            ],
            "api_base": "https://me:p%40ss-w0rd@host/v1",
            "storage": {"connection_string": "Name=x;AccountKey=abc/9d8e7f6a==;Suffix=y"},
        }
    )
    for value in (KEY, 'a"ü 77x', json.dumps('a"ü 77x')[1:-1], "p@ss-w0rd", "p%40ss-w0rd"):
        assert redact(f"is {value}!") == f"is {REDACTED}!"
    assert "9d8e" not in redact_data("AccountKey abc/9d8e7f6a== was wrong")


def test_keys_are_known_by_their_names_and_ordinary_words_are_none_where_something_is_measured():
    know_settings(
        {"a": {"api_key": "ollama"}, "b": {"api_key": "Ashcombe"}, "c": {"api_key": "x1"}}
    )
    know_variables({"CACHE_KEY": "results", "PORT_KEY": "12345678", "HOME": "/root/a9b8c7d6"})
    plain = "ollama x1 results 12345678 /root/a9b8c7d6"
    assert redact(plain) == redact_data(plain) == plain
    assert redact("Ashcombe") == REDACTED
    assert redact_data("Ashcombe") == "Ashcombe"
    know_variables(
        {"GEMINI_API_KEY": KEY, "HF_TOKEN": "a-9b8c7d6e", "PROXY": "http://u:pw9-x8y7@h"}
    )
    assert redact_data(f"{KEY} a-9b8c7d6e pw9-x8y7") == " ".join([REDACTED] * 3)


@given(st.lists(st.sampled_from([KEY[:5], KEY[5:], KEY, "9", "9f", " is "]), max_size=8))
def test_a_stream_says_what_the_whole_text_does(pieces):
    know_settings({"api_key": KEY})
    shown = StreamRedactor()
    said = "".join([*(shown.feed(piece) for piece in pieces), shown.end()])
    assert said == redact_data("".join(pieces))


@settings(max_examples=30)
@given(st.text())
def test_nothing_else_changes(text):
    know_settings({"api_key": KEY})
    assert redact_data(text) == text


def test_a_long_text_is_read_in_one_pass():
    assert redact("a" * 200_000) == "a" * 200_000


def test_log_records_of_any_library(caplog):
    know_settings({"api_key": KEY})
    logger = logging.getLogger("somebody.else")
    logger.warning("asked with %s", {"api_key": KEY})
    logger.warning("%d calls", 3)
    try:
        raise ValueError(KEY)
    except ValueError:
        logger.exception("failed")
    assert KEY not in caplog.text
    assert "ValueError" in caplog.text
    assert caplog.records[1].args == (3,)
