from collections.abc import Iterator

import pytest
from support.postgresql_server import PostgreSQLServer, running_postgresql


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQLServer]:
    try:
        with running_postgresql() as server:
            yield server
    except FileNotFoundError as error:
        pytest.skip(str(error))
