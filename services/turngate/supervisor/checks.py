"""What the edge checks of a request before the machine hears of it: ids, lengths, and who it is.

Texts of objectives and of guidance are the protocol's to judge. Everything here raises a typed error that names the
field and the way out.
"""

from turngate_contracts.beats import MAX_HELD, Beat
from turngate_contracts.errors import InvalidMessage, PayloadTooLarge
from turngate_contracts.esm import MAX_PATH
from turngate_contracts.ids import check_id
from turngate_protocol.text import byte_length

MAX_POOLS = 64
"""Most pools of one runner."""


def optional_id(field: str, value: str) -> str:
    """Return an id that may be left empty.

    Raises:
        InvalidId: it is neither empty nor an id.
    """
    return check_id(field, value) if value else ""


def work_dir(path: str) -> str:
    """Return the path of a work directory; whether it exists is its runner's to say.

    Raises:
        PayloadTooLarge, InvalidMessage: no system opens it.
    """
    if byte_length(path) > MAX_PATH:
        raise PayloadTooLarge("work_dir", byte_length(path), MAX_PATH)
    if "\0" in path:
        raise InvalidMessage("work_dir holds a NUL character; give a path", field="work_dir")
    return path


def beat(request: Beat) -> Beat:
    """Return a beat whose ids are ids and whose lists are short enough.

    Raises:
        InvalidId, InvalidMessage: they are not.
    """
    check_id("incarnation", request.incarnation)
    if not 1 <= len(request.pools) <= MAX_POOLS:
        raise InvalidMessage(f"pools must name 1 to {MAX_POOLS} pools, not {len(request.pools)}", field="pools")
    for pool in request.pools:
        check_id("pool", pool)
    if len(request.held) > MAX_HELD:
        raise InvalidMessage(f"held may name {MAX_HELD} role runs, not {len(request.held)}", field="held")
    for held in request.held:
        check_id("session", held.session)
        check_id("role_run", held.role_run)
        check_id("claim", held.claim)
    return request
