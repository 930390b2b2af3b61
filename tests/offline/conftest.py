import pytest
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import create_embedding


@pytest.fixture(scope="session")
def completion():
    return create_completion(ModelConfig(type="offline", model_provider="offline", model="rules"))


@pytest.fixture(scope="session")
def embedding():
    return create_embedding(
        ModelConfig.model_validate(
            {
                "type": "offline",
                "model_provider": "offline",
                "model": "hashed-ngrams",
                "dimensions": 384,
            }
        )
    )


@pytest.fixture(scope="session")
def ask(completion):
    """Text of a reply to a user message, a system message before it if given."""

    def ask(user, system=None, **kwargs):
        messages = [{"role": "system", "content": system}] if system is not None else []
        response = completion.completion(
            messages=[*messages, {"role": "user", "content": user}], **kwargs
        )
        return response.formatted_response if "response_format" in kwargs else response.content

    return ask
