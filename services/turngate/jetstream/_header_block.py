"""Reading header blocks as they come, without what nats-py's email parser costs."""


def parse_headers(block: bytes) -> tuple[int, dict[str, str]]:
    """Return the status (0 when there is none) and the fields of a header block; what is malformed is left out."""
    if not block:
        return 0, {}
    first, _, rest = block.partition(b"\r\n")
    status = first[8:].split(b" ", 2)
    number = next((int(part) for part in status if len(part) == 3 and part.isdigit()), 0)
    fields = {}
    for line in rest.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            fields[name.decode("utf-8", "replace")] = value.strip().decode("utf-8", "replace")
    return number, fields
