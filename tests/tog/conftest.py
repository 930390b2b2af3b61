"""The small index, opened once for all tests of this folder."""

import pytest
from support.tog_world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The small index."""
    return World(tmp_path_factory.mktemp("vectors"))
