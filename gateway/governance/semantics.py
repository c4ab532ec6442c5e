"""The contract's section `semantics`: value domains of fields (R13).

Siblings of one shape: each section is one module with a frozen value and `read(reader, found)`.
"""

from dataclasses import dataclass

from acp_spec.codec.yaml_tree import Mapping, json_text
from gateway.expressions.field_reader import Field, FieldReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """The section as JSON text, an object."""

    raw: bytes = b"{}"


def read(reader: FieldReader, found: Field) -> Semantics:
    """The section; what is wrong in it is noted in `reader`."""
    reader.fields(found.value, found.path, known=None)
    return Semantics(raw=json_text(found.value) if isinstance(found.value, Mapping) else b"{}")
