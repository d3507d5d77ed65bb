"""The identities as nats-server reads them: accounts, what crosses between them, users with their keys, and TLS.

The file holds public keys only. It is for `include` in a server's configuration, and the same on each server of a
cluster.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from turngate_contracts.permissions import Access, Account, Export, Kind, exports, of_console, of_person, of_runner
from turngate_contracts.service_permissions import of_admin, of_service
from turngate_contracts.topology import CONCLUSION, Topology

ANSWER_S: Final = 30
"""For how long a runner may answer what it was asked; longer than the conclusion service waits at most."""
MAX_PAYLOAD: Final = 4 * 1024 * 1024
MAX_CONNECTIONS: Final = 16_384
"""Most connections to one server; each account but CORE may have half of them, so that none can lock CORE out."""
MAX_SUBSCRIPTIONS: Final = 1_024
"""Most subscriptions of one connection."""


class Identity(Struct, frozen=True, omit_defaults=True):
    """Who may connect: a name, what it is, its public key, and a runner's pools."""

    name: str
    kind: Kind
    key: str
    pools: tuple[str, ...] = ()


class Certificates(Struct, frozen=True, omit_defaults=True):
    """The server's certificate and key, and the certificate that signed it, as absolute paths.

    `verify` has the server want certificates of its clients too, signed by the same one.
    """

    cert: str
    key: str
    ca: str = ""
    verify: bool = False


def access_of(topology: Topology, identity: Identity, asks: Sequence[str] = ()) -> Access:
    """Return what an identity may do."""
    subjects = topology.subjects
    match identity.kind:
        case Kind.ADMIN:
            return of_admin(identity.name)
        case Kind.SERVICE:
            return of_service(topology, identity.name, asks if identity.name == CONCLUSION else ())
        case Kind.RUNNER:
            return of_runner(subjects, identity.name, identity.pools)
        case Kind.CONSOLE:
            return of_console(subjects, identity.name)
        case Kind.OPERATOR | Kind.VIEWER:
            return of_person(subjects, identity.name, identity.kind)


def render(
    topology: Topology, identities: Iterable[Identity], certificates: Certificates | None, asks: Sequence[str] = ()
) -> str:
    """Return the configuration."""
    lines = [
        "# Written by `turngate auth` from its list of identities: changes are lost. It holds no secrets.",
        f"max_payload: {MAX_PAYLOAD}",
        f"max_connections: {MAX_CONNECTIONS}",
        f"max_subscriptions: {MAX_SUBSCRIPTIONS}",
        "accounts {",
    ]
    crossing = exports(topology.subjects)
    everybody = list(identities)
    for account in Account:
        users = [each for each in everybody if each.kind.account is account]
        lines += _account(account, crossing, [(each, access_of(topology, each, asks)) for each in users])
    lines.append("}")
    if certificates is not None:
        lines += _tls(certificates)
    return "\n".join([*lines, ""])


def _account(account: Account, crossing: list[Export], users: list[tuple[Identity, Access]]) -> list[str]:
    own = "jetstream: enabled" if account is Account.CORE else f"limits {{ max_connections: {MAX_CONNECTIONS // 2} }}"
    lines = [f"  {account.value} {{", f"    {own}", "    exports: ["]
    owned: dict[tuple[str, bool, bool], list[str]] = {
        (e.subject, e.stream, e.many): [] for e in crossing if e.owner is account
    }
    for export in crossing:
        if export.owner is account:
            owned[(export.subject, export.stream, export.many)].append(export.to.value)
    for (subject, stream, many), importers in owned.items():
        kind, several = "stream" if stream else "service", ", response_type: stream" if many else ""
        lines.append(f"      {{ {kind}: {_quoted(subject)}, accounts: [{', '.join(importers)}]{several} }}")
    lines += ["    ]", "    imports: ["]
    for export in crossing:
        if export.to is account:
            kind = "stream" if export.stream else "service"
            source = f"{{ account: {export.owner.value}, subject: {_quoted(export.subject)} }}"
            named = f", to: {_quoted(export.local)}" if export.local else ""
            lines.append(f"      {{ {kind}: {source}{named} }}")
    lines += ["    ]", "    users: ["]
    for identity, access in users:
        lines += _user(identity, access)
    return [*lines, "    ]", "  }"]


def _user(identity: Identity, access: Access) -> list[str]:
    pools = f" of {', '.join(identity.pools)}" if identity.pools else ""
    answers = f', allow_responses: {{ max: 1, expires: "{ANSWER_S}s" }}' if access.answers else ""
    return [
        f"      # {identity.kind.value} {identity.name}{pools}",
        f"      {{ nkey: {identity.key}, permissions: {{",
        f"        publish: {{ allow: [{_listed(access.publish)}] }},",
        f"        subscribe: {{ allow: [{_listed(access.subscribe)}] }}{answers}",
        "      } }",
    ]


def _tls(certificates: Certificates) -> list[str]:
    lines = ["tls {", f"  cert_file: {_quoted(certificates.cert)}", f"  key_file: {_quoted(certificates.key)}"]
    if certificates.ca:
        lines.append(f"  ca_file: {_quoted(certificates.ca)}")
    if certificates.verify:
        lines.append("  verify: true")
    return [*lines, "  timeout: 5", "}"]


def _listed(subjects: Iterable[str]) -> str:
    return ", ".join(map(_quoted, subjects))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
