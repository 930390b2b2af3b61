"""The small index, opened once for all tests of this folder."""

import pytest
from support.tog_world import World


@pytest.fixture(scope="session")
def world() -> World:
    return World()
