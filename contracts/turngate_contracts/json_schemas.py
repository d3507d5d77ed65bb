"""The JSON Schema of every message, derived from its Struct.

msgspec writes the schemas. Two things it can't know are told to it here: what a field of raw JSON holds, and which
texts and numbers the services take from outside, where the type says only `str` or `int`. Both are told by describing
each message with a twin Struct, whose fields have the fuller types. Twins describe; nothing is ever decoded into one.
"""

import types
from collections.abc import Iterable
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct

from turngate_contracts.catalogue import INTAKE, REQUESTS
from turngate_contracts.ids import MAX_ID
from turngate_contracts.messages import SCHEMAS, CheckReport, ReportChecked, ReportSubmitted, Verdict
from turngate_protocol.esm import state as esm_state
from turngate_protocol.question import model as question_model
from turngate_protocol.question import session as question_session
from turngate_protocol.report.model import Report
from turngate_protocol.report.session import Turn
from turngate_protocol.report.turn import MAX_NUMBER

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ID_PATTERN: Final = f"^[A-Za-z0-9_-]{{1,{MAX_ID}}}$"
"""What an id looks like to readers of the documents; `ids` is what enforces it."""

_AS_WRITTEN: Final = Annotated[
    Any, Meta(description="The JSON that the model wrote, whatever it is; the gate says what is wrong with it.")
]
_RAW: Final[dict[tuple[type[Struct], str], Any]] = {
    (ReportSubmitted, "report"): _AS_WRITTEN,
    (CheckReport, "report"): _AS_WRITTEN,
    (Verdict, "report"): Report,
    (ReportChecked, "report"): Report,
    (Turn, "report"): Report,
}
"""What a field of raw JSON holds; one that is not listed may hold anything."""

_FROM_OUTSIDE: Final = frozenset({*(row.message for row in INTAKE), *(row.request for row in REQUESTS)})
_Id = Annotated[str, Meta(pattern=ID_PATTERN)]
_Number = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
_CHECKED: Final[dict[str, Any]] = {
    **dict.fromkeys(("session", "runner", "pool", "id", "task"), _Id),
    **dict.fromkeys(("turn", "attempt", "ending"), _Number),
}
"""The fields that a service refuses unless they look like this, where a message from outside requires them."""

_CALLED: Final[dict[type[Struct], str]] = {
    question_model.Answer: "QuestionAnswer",
    question_model.Option: "QuestionOption",
    question_session.Outcome: "DecidedQuestion",
    esm_state.Cause: "ObjectiveCause",
}
"""What the documents call the Structs whose names are also those of the turn gate's."""

_twins: dict[type[Struct], type[Struct]] = {}


def components(messages: Iterable[type[Struct]], ref: str = "#/$defs/{name}") -> dict[str, dict[str, Any]]:
    """Return the schemas of the messages and of all that they hold, by name.

    Args:
        messages: the Structs; the name of one is its class's, unless two classes share it.
        ref: how one schema refers to another, with `{name}` in it.
    """
    return msgspec.json.schema_components([_twin(kind) for kind in messages], ref_template=ref)[1]


def names(messages: Iterable[type[Struct]]) -> dict[type[Struct], str]:
    """Return what `components` of the same messages calls each of them."""
    kinds = tuple(messages)
    refs = msgspec.json.schema_components(map(_twin, kinds), ref_template="{name}")[0]
    return {kind: ref["$ref"] for kind, ref in zip(kinds, refs, strict=True)}


def message_schema(message: type[Struct]) -> dict[str, Any]:
    """Return one message's schema, JSON Schema 2020-12, with all that it refers to inside."""
    defined = components([message])
    own = defined.pop(names([message])[message])
    schema = {"$schema": DIALECT, "$id": f"urn:turngate:{SCHEMAS[message]}", **own}
    return {**schema, "$defs": defined} if defined else schema


def draft_07(schema: Any) -> Any:
    """Return a schema for readers of JSON Schema draft 07, which spells tuples differently."""
    if isinstance(schema, list):
        return [draft_07(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # OpenAPI's hint beside `anyOf`, which AsyncAPI spells differently; the constant tags say the same.
    found = {key: draft_07(part) for key, part in schema.items() if key != "discriminator"}
    if "prefixItems" in found:
        found["additionalItems"] = found.pop("items", True)
        found["items"] = found.pop("prefixItems")
    return found


def _twin(kind: type[Struct]) -> type[Struct]:
    twin = _twins.get(kind)
    if twin is not None:
        return twin
    hints = get_type_hints(kind, include_extras=True)
    fields = [_twin_field(kind, field, hints[field.name]) for field in msgspec.structs.fields(kind)]
    config = kind.__struct_config__
    _twins[kind] = twin = msgspec.defstruct(
        _CALLED.get(kind, kind.__name__),
        fields,
        module=kind.__module__,
        namespace={"__doc__": kind.__doc__},
        rename={field.name: field.encode_name for field in msgspec.structs.fields(kind)},
        tag=config.tag,
        tag_field=config.tag_field,
        forbid_unknown_fields=config.forbid_unknown_fields,
        kw_only=True,
    )
    return twin


def _twin_field(kind: type[Struct], field: msgspec.structs.FieldInfo, hint: Any) -> tuple[str, Any, Any]:
    if hint is Raw:
        hint = _RAW.get((kind, field.name), Any)
    elif field.required and kind in _FROM_OUTSIDE:
        hint = _CHECKED.get(field.name, hint)
    described = _described(hint)
    if field.required:
        return field.name, described, msgspec.field()
    if isinstance(field.default, Raw):
        # Absent, not null: a factory says that the field may be left out and claims no value in its place.
        return field.name, described, msgspec.field(default_factory=_absent)
    if field.default is msgspec.NODEFAULT:
        return field.name, described, msgspec.field(default_factory=field.default_factory)
    return field.name, described, msgspec.field(default=field.default)


def _described(hint: Any) -> Any:
    """Return a type with twins in the place of Structs."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _twin(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[(_described(arguments[0]), *arguments[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_described, arguments))]  # noqa: UP007  the members are known at run time only
    if origin in (tuple, list, dict, set, frozenset):
        return origin[tuple(map(_described, arguments))]
    return hint


def _absent() -> None:
    return None
