"""The contract's section `sandbox`: the isolation that program components must have (R11).

Siblings of one shape: each section is one module with a frozen value and `read(reader, found)`.
"""

from dataclasses import dataclass

from acp_spec.codec.yaml_tree import Mapping, json_text
from gateway.expressions.field_reader import Field, FieldReader


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDemands:
    """The section as JSON text, an object."""

    raw: bytes = b"{}"


def read(reader: FieldReader, found: Field) -> SandboxDemands:
    """The section; what is wrong in it is noted in `reader`."""
    reader.fields(found.value, found.path, known=None)
    is_object = isinstance(found.value, Mapping)
    return SandboxDemands(raw=json_text(found.value) if is_object else b"{}")
