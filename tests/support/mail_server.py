"""A mail server on this machine that keeps what it takes, and refuses as it is told."""

import socketserver
import threading
from contextlib import contextmanager
from email import message_from_bytes
from email.policy import default


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP (RFC 5321) as one client needs.

    refused: replies to RCPT TO by address. at_data: replies to what was sent after DATA;
    "" closes the connection instead, and keeps the mail.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Session)
        self.messages = []
        self.refused = {}
        self.at_data = {}

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.server_address[1]}"

    @property
    def addresses(self):
        return [to for to, _ in self.messages]

    def read(self, number=0):
        """One of the mails, parsed."""
        return message_from_bytes(self.messages[number][1], policy=default)


class Session(socketserver.StreamRequestHandler):
    def reply(self, text):
        self.wfile.write(f"{text}\r\n".encode())

    def handle(self):
        self.reply("220 mail.example")
        to = ""
        while line := self.rfile.readline().decode().strip():
            command = line.upper()
            if command.startswith("RCPT TO:"):
                to = line.partition("<")[2].partition(">")[0]
                answer = self.server.refused.get(to, "250 ok")
                if not answer:
                    return
                self.reply(answer)
            elif command == "DATA":
                self.reply("354 go on")
                self.server.messages.append((to, self.read_text()))
                answer = self.server.at_data.get(to, "250 taken")
                if not answer:
                    return
                if not answer.startswith("250"):
                    self.server.messages.pop()
                self.reply(answer)
            elif command == "QUIT":
                self.reply("221 bye")
                return
            else:
                self.reply("250 ok")

    def read_text(self):
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        return b"".join(lines)


@contextmanager
def running():
    with MailServer() as server:
        often = {"poll_interval": 0.01}  # else it takes half a second to end
        thread = threading.Thread(target=server.serve_forever, kwargs=often)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
