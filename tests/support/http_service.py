"""An HTTP service on 127.0.0.1 that answers as a function says."""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, bytes, dict[str, str]], tuple[int, bytes]]
"""From a request's path, body and headers to the status and body of its answer."""


@contextmanager
def serving(answer: Answer, more: Mapping[str, str] = {}) -> Generator[str]:
    """Serve GET and POST until the block ends, with ``more`` headers; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = answer(self.path, body, dict(self.headers))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
