"""A webhook over HTTPS for tests: prints its port, then the body of each request that it takes. `server.py FOLDER-OF-CERTIFICATE`."""
import http.server
import pathlib
import ssl
import sys


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        print(body.decode().replace("\n", " "), flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


folder = pathlib.Path(sys.argv[1])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder / "localhost.pem", folder / "localhost.key")
server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
