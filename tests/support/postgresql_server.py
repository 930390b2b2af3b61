"""A PostgreSQL server of its own in a folder, on a Unix socket."""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "planted/Passw0rd"
QUOTED_PASSWORD = "planted%2FPassw0rd"


def find_programs() -> Path | None:
    """Return the folder of initdb and pg_ctl; Debian has it outside of the path."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((each for each in folders if (each / "pg_ctl").exists()), None)


class PostgreSQLServer:
    """A running server; who says he is ``evaluator`` needs a password, others nothing."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self.folder = folder
        self._data = folder / "data"
        self._numbers = itertools.count()

    def make(self) -> None:
        self._run("initdb", "-D", self._data, "--no-sync", "-A", "trust", "-U", "postgres")
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\nfsync = off\n"
                "lc_messages = 'C'\nshared_buffers = '16MB'\n"
            )
        rights = self._data / "pg_hba.conf"
        rights.write_text(f"local all evaluator scram-sha-256\n{rights.read_text()}")
        self.start()
        self.sql(f"CREATE ROLE evaluator LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self.folder / "log")

    def crash(self) -> None:
        """Stop at once, as at a power cut of the server's process."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self._data)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self, owner: str = "postgres", more: str = "") -> str:
        """Return the address of an empty database."""
        name = f"runs{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} OWNER {owner} {more}")
        return self.url(name)

    def url(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def _run(self, program: str, *arguments: object) -> None:
        words = [str(self._programs / program), *map(str, arguments)]
        if os.geteuid() == 0:  # which the server refuses to run as
            words = ["runuser", "-u", "postgres", "--", *words]
        subprocess.run(
            words, check=True, cwd="/", stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )


@contextmanager
def running_postgresql() -> Iterator[PostgreSQLServer]:
    """Make a server and remove it in the end; FileNotFoundError where there is no PostgreSQL."""
    programs = find_programs()
    if programs is None:
        msg = "there is no PostgreSQL here; on Debian: apt-get install postgresql"
        raise FileNotFoundError(msg)
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        folder.chmod(0o755)
        server = PostgreSQLServer(programs, folder)
        try:
            server.make()
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.crash()
