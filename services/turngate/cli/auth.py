"""`turngate auth`: who may connect. It makes identities, tells the NATS server of them, and takes them away."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turngate.cli.commands import NOT_OK, OK, Parser, UsageError, utf8
from turngate.cli.config import add_settings, load

if TYPE_CHECKING:
    from turngate.auth.directory import AuthDirectory, Listed
    from turngate.auth.server_config import Certificates, Identity
    from turngate.login import Login
    from turngate.settings import Settings

AUTH: Final = "auth"
"""The folder of the state directory that identities are kept in."""
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1")


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate auth`."""
    parser.explain(
        """
        Make the identities of a secured system, one key for each service, runner, person
        and console, and write what nats-server needs to know of them: accounts, what each
        may publish and subscribe to, TLS. Seeds are in files that only you can read; a
        client is given the path of its own as TURNGATE_NATS_SEED_FILE.

        `turngate up --secure` does all of this for a server here, and its server knows of
        each change at once. To secure a server of your own, `include` the file
        nats-auth.conf in its configuration, and have it read that again after a change:
        `nats-server --signal reload`. docs/security.md says who may do what.
        """,
        """
        turngate auth init
        turngate auth init --tls --tls-host nats.example.org
        turngate auth add-runner build-7 --pool web --pool gpu
        turngate auth add-ui ann
        turngate auth add-ui wall-screen --role viewer
        turngate auth revoke build-7
        turngate auth show
        """,
    )
    _init(parser.add_command("init", "make the identities of the services, and the server's configuration"))
    _add_runner(parser.add_command("add-runner", "make a runner's identity, or change its pools"))
    _add_ui(parser.add_command("add-ui", "make a person's identity, or a console's"))
    _revoke(parser.add_command("revoke", "take an identity away; its connections end at once"))
    _show(parser.add_command("show", "list the identities, or what one of them may do"))


def directory_of(settings: "Settings") -> "AuthDirectory":
    """Return the directory of identities that settings name."""
    from turngate.auth.directory import AuthDirectory
    from turngate.cli.up import state_dir_of

    return AuthDirectory(state_dir_of(settings) / AUTH)


def initialise(settings: "Settings", certificates: "Certificates | None") -> list[str]:
    """Make what every secured system has, and return the identities that are new."""
    asks = (settings.memory_subject,) if settings.memory_subject else ()
    return directory_of(settings).init(settings.topology(), certificates=certificates, asks=asks)


def own_certificates(settings: "Settings", hosts: list[str]) -> "Certificates":
    """Make an authority and a server's certificate in the directory of identities, where there are none yet."""
    from turngate.auth.certificates import make_certificates
    from turngate.auth.files import make_private_directory

    directory = directory_of(settings)
    make_private_directory(directory.path)
    return make_certificates(directory.path / "tls", list(dict.fromkeys((*LOCAL_HOSTS, *hosts))))


def _init(parser: Parser) -> None:
    parser.add_argument(
        "--tls", action="store_true", help="make an authority and a certificate for the server, with openssl"
    )
    parser.add_argument(
        "--tls-host",
        action="append",
        default=[],
        type=_host,
        metavar="HOST",
        help="a further name or address that the certificate is for; repeatable",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="the server's certificate, if you have one")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")
    parser.add_argument("--tls-ca", type=Path, metavar="FILE", help="the certificate that signed it")
    parser.add_argument(
        "--tls-verify",
        action="store_true",
        help="have the server want certificates of its clients too (needs --tls-ca)",
    )
    names = ("namespace", "durability", "replicas", "memory_subject")
    _common(parser, _run_init, *names, json="{directory, config, created, next}")


def _add_runner(parser: Parser) -> None:
    parser.add_argument("name", type=utf8, metavar="NAME", help="the runner's id")
    parser.add_argument(
        "--pool", action="append", type=utf8, metavar="P", help="a pool that it takes work of; repeatable (default)"
    )
    _common(parser, _run_add_runner, "nats_url", json="{identity, seed_file, server}")


def _add_ui(parser: Parser) -> None:
    parser.add_argument("name", type=utf8, metavar="NAME", help="the id that answers and changes are recorded with")
    parser.add_argument(
        "--role",
        choices=("operator", "viewer", "console"),
        default="operator",
        metavar="R",
        help="operator: may do all that people may; viewer: may only look; console: acts for those who log in to it"
        " (default operator)",
    )
    _common(parser, _run_add_ui, "nats_url", json="{identity, seed_file, server}")


def _revoke(parser: Parser) -> None:
    parser.add_argument("name", type=utf8, metavar="NAME", help="whose")
    _common(parser, _run_revoke, "nats_url", json="{revoked, server}")


def _show(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", default="", type=utf8, metavar="NAME", help="whose permissions")
    _common(parser, _run_show, json="{directory, config, identities}, or {identity, publish, subscribe}")


def _common(parser: Parser, run: Any, *names: str, json: str) -> None:
    parser.add_json(json)
    add_settings(parser, "state_dir", *names)
    parser.runs(run)


def _host(text: str) -> str:
    if not text or any(not (c.isascii() and (c.isalnum() or c in ".-:*")) for c in text):
        raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is no host name or address")
    return text


def _run_init(args: argparse.Namespace) -> int:
    settings = _settings(args)
    certificates = _certificates(args, settings)
    created = initialise(settings, certificates)
    directory = directory_of(settings)
    facts = {
        "directory": str(directory.path),
        "config": str(directory.config_file),
        "created": created,
        "next": f'add `include "{directory.config_file.name}"` to the server\'s configuration, beside the file',
    }
    lines = [
        f"identities are in {directory.path}: {', '.join(created) if created else 'nothing was missing'}",
        f"for nats-server: {directory.config_file} (no secrets in it)",
        "next: `turngate up --secure` here, or `include` that file in your server's configuration and reload it",
        "then: turngate auth add-runner NAME --pool POOL, turngate auth add-ui NAME",
    ]
    return _tell(args, facts, lines)


def _certificates(args: argparse.Namespace, settings: "Settings") -> "Certificates | None":
    from turngate.auth.server_config import Certificates

    given = (args.tls_cert, args.tls_key)
    if args.tls and any(given):
        raise UsageError("--tls makes a certificate; leave it out to use the one of --tls-cert and --tls-key")
    if args.tls:
        made = own_certificates(settings, args.tls_host)
        return Certificates(made.cert, made.key, made.ca, args.tls_verify)
    if not any(given):
        if args.tls_ca or args.tls_verify or args.tls_host:
            raise UsageError("--tls-ca, --tls-host and --tls-verify need --tls, or --tls-cert and --tls-key")
        return None
    if not all(given) or (args.tls_verify and not args.tls_ca):
        raise UsageError("give --tls-cert and --tls-key together, and --tls-ca with --tls-verify")
    for path in (*given, *([args.tls_ca] if args.tls_ca else ())):
        if not path.is_file():
            raise UsageError(f"{path} is no file; name PEM files")
    ca = str(args.tls_ca.absolute()) if args.tls_ca else ""
    return Certificates(str(args.tls_cert.absolute()), str(args.tls_key.absolute()), ca, args.tls_verify)


def _run_add_runner(args: argparse.Namespace) -> int:
    from turngate_contracts.permissions import Kind

    settings = _settings(args)
    pools = args.pool or [settings.pool]
    identity = directory_of(settings).add(args.name, Kind.RUNNER, pools)
    return _added(args, settings, identity, "turngate runner -- my-agent")


def _run_add_ui(args: argparse.Namespace) -> int:
    from turngate_contracts.permissions import Kind

    settings = _settings(args)
    identity = directory_of(settings).add(args.name, Kind(args.role))
    command = "turngate serve console" if identity.kind is Kind.CONSOLE else "turngate inbox"
    return _added(args, settings, identity, command)


def _added(args: argparse.Namespace, settings: "Settings", identity: "Identity", command: str) -> int:
    directory = directory_of(settings)
    seed_file = directory.seed_file(identity.name)
    listed = directory.listed()
    known = _ask(settings, _login(listed, seed_file), admitted=True)
    facts = {"identity": _shown(identity), "seed_file": str(seed_file), "server": _known(settings, known)}
    pools = f" of {', '.join(identity.pools)}" if identity.pools else ""
    article = "an" if identity.kind.value[0] in "aeiou" else "a"
    lines = [
        f"{identity.name} is {article} {identity.kind.value}{pools}",
        _sentence(settings, known, f"{identity.name} may connect"),
        "",
        f"  export TURNGATE_NATS_SEED_FILE={seed_file}",
        *(
            [f"  export TURNGATE_TLS_CA={listed.certificates.ca}"]
            if listed.certificates and listed.certificates.ca
            else []
        ),
        *(f"  export TURNGATE_POOL={pool}" for pool in identity.pools[:1]),
        f"  {command}",
    ]
    return _tell(args, facts, lines)


def _run_revoke(args: argparse.Namespace) -> int:
    settings = _settings(args)
    directory = directory_of(settings)
    aside = directory.revoke(args.name)
    known = None
    if aside is not None:
        known = _ask(settings, _login(directory.listed(), aside), admitted=False)
        directory.forget(aside)
    facts = {"revoked": args.name, "server": _known(settings, known)}
    if aside is None:
        return _tell(args, facts, [f"{args.name} was revoked before"])
    _tell(args, facts, [f"{args.name} is revoked", _sentence(settings, known, "its connections are ended")])
    return NOT_OK if known is False else OK


def _run_show(args: argparse.Namespace) -> int:
    from turngate.auth.errors import UnknownIdentity
    from turngate.auth.server_config import access_of

    settings = _settings(args)
    directory = directory_of(settings)
    listed = directory.listed()
    if not args.name:
        rows = [{**_shown(each), "seed_file": str(directory.seed_file(each.name))} for each in listed.identities]
        facts: dict[str, Any] = {
            "directory": str(directory.path),
            "config": str(directory.config_file),
            "tls": listed.certificates is not None,
            "identities": rows,
        }
        if args.json:
            return _tell(args, facts, [])
        from turngate.terminal import Terminal

        heads = ["name", "kind", "pools", "account", "public key"]
        cells = [[r["name"], r["kind"], ", ".join(r["pools"]), r["account"], r["key"]] for r in rows]
        Terminal().table(heads, cells)
        return OK
    found = next((each for each in listed.identities if each.name == args.name), None)
    if found is None:
        raise UnknownIdentity(args.name, [each.name for each in listed.identities])
    access = access_of(listed.topology, found, listed.asks)
    facts = {"identity": _shown(found), "publish": list(access.publish), "subscribe": list(access.subscribe)}
    lines = [f"{found.name}, {found.kind.value}, in {found.kind.account.value}", "may publish to:"]
    lines += [f"  {subject}" for subject in access.publish]
    lines += ["may subscribe to:", *(f"  {subject}" for subject in access.subscribe)]
    return _tell(args, facts, [*lines, *(["and may answer what it is asked"] if access.answers else [])])


def _settings(args: argparse.Namespace) -> "Settings":
    return load(args, os.environ, Path.cwd())


def _login(listed: "Listed", seed_file: Path) -> "Login":
    from turngate.login import Login

    certificates = listed.certificates
    return Login(str(seed_file), tls_ca=certificates.ca if certificates else "")


def _ask(settings: "Settings", login: "Login", *, admitted: bool) -> bool | None:
    import asyncio

    from turngate.auth.knowing import knows
    from turngate.logs import silence

    silence()
    return asyncio.run(knows(settings.nats_url, login, admitted=admitted))


def _known(settings: "Settings", known: bool | None) -> dict[str, Any]:
    from turngate.logs import without_secrets

    return {"url": without_secrets(settings.nats_url), "knows": known}


def _sentence(settings: "Settings", known: bool | None, then: str) -> str:
    from turngate.logs import without_secrets

    url = without_secrets(settings.nats_url)
    if known:
        return f"the server at {url} knows: {then}"
    if known is None:
        return f"no server was asked (none at {url}); {then} once a server has read the configuration"
    return f"the server at {url} does not know yet; run `nats-server --signal reload` there, and then {then}"


def _shown(identity: "Identity") -> dict[str, Any]:
    account = identity.kind.account.value
    return {
        "name": identity.name,
        "kind": identity.kind.value,
        "account": account,
        "pools": list(identity.pools),
        "key": identity.key,
    }


def _tell(args: argparse.Namespace, facts: dict[str, Any], lines: list[str]) -> int:
    if args.json:
        from turngate.cli.output import print_json

        print_json(facts)
    else:
        sys.stdout.write("\n".join([*lines, ""]))
    return OK
