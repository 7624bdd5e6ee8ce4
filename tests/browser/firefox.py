"""Firefox, headless, by WebDriver BiDi over a WebSocket (W3C; RFC 6455)."""
import base64, json, os, re, socket, struct, subprocess


class Firefox:
    """What page.py asks of a browser, as read_page.Browser has it for Chromium."""

    def __init__(self, program, folder):
        self.log = open(os.path.join(folder, "firefox.log"), "wb+")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--profile", folder,
             "--remote-debugging-port", "0", "about:blank"],
            stdout=self.log, stderr=self.log, env=dict(os.environ, MOZ_CRASHREPORTER_DISABLE="1"))
        self.last, self.buffer = 0, b""
        self.connect(self.port())
        self.call("session.new", capabilities={})
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def port(self):
        while True:
            with open(self.log.name, "rb") as said:
                found = re.search(rb"BiDi listening on ws://127.0.0.1:(\d+)", said.read())
            if found:
                return int(found[1])
            if self.process.poll() is not None:
                raise SystemExit(f"FAILED: firefox ends with {self.process.returncode}")
            try:
                self.process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                pass

    def connect(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall((f"GET /session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                             f"{base64.b64encode(os.urandom(16)).decode()}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.read_more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"FAILED: {head[:200]}")

    def read_more(self):
        more = self.socket.recv(1 << 20)
        if not more:
            raise SystemExit("FAILED: firefox ended")
        self.buffer += more

    def take(self, size):
        while len(self.buffer) < size:
            self.read_more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def send(self, kind, data):
        mask = os.urandom(4)
        size = (bytes([0x80 | len(data)]) if len(data) < 126
                else struct.pack(">BH", 0x80 | 126, len(data)) if len(data) < 65536
                else struct.pack(">BQ", 0x80 | 127, len(data)))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | kind]) + size + mask + masked)

    def message(self):
        whole = b""
        while True:
            first, second = self.take(2)
            size = second & 0x7f
            if size >= 126:
                size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
            data = self.take(size)
            if first & 0xf == 9:
                self.send(10, data)  # a pong for its ping
            elif first & 0xf in (0, 1):
                whole += data
                if first & 0x80:
                    return json.loads(whole)

    def call(self, method, **parameters):
        self.last += 1
        self.send(1, json.dumps({"id": self.last, "method": method, "params": parameters}).encode())
        while True:
            answer = self.message()
            if answer.get("id") == self.last:
                if answer["type"] == "error":
                    raise SystemExit(f"FAILED: {method}: {answer['message']}")
                return answer["result"]

    def navigate(self, url):
        self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def value(self, expression):
        """Of an expression whose value JSON has."""
        answer = self.call("script.evaluate", target={"context": self.context}, awaitPromise=True,
                           expression=f"(async () => JSON.stringify(await ({expression})))()")
        if answer["type"] == "exception":
            raise SystemExit(f"FAILED: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"].get("value", "null"))

    def close(self):
        self.call("session.end")
        self.process.terminate()
        self.process.wait(timeout=20)
        self.log.close()
