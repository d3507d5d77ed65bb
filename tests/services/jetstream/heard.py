"""A listener, for tests of what a connection hears."""

Message = tuple[bytes, bytes, bytes, bytes]


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __call__(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self.messages.append((subject, reply, body, head))

    @property
    def bodies(self) -> list[bytes]:
        return [message[2] for message in self.messages]
