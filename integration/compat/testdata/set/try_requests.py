#!/usr/bin/python3
# There is no network but loopback: a name does not resolve, at once.
import http.server
import threading
import requests

try:
    requests.get("http://example.invalid/")
except requests.ConnectionError:
    print("ConnectionError")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(requests.get("http://127.0.0.1:%d/" % server.server_port).status_code)
