"""Runs protoc over acp.proto and reads its comments: the texts of every generated document."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2

SOURCE: Final = "acp_spec/proto/v1/acp.proto"

# Numbers of the fields that a source location's path is made of (descriptor.proto).
_FILE_MESSAGES: Final = 4
_FILE_ENUMS: Final = 5
_FILE_SERVICES: Final = 6
_INNER: Final = 2
"""Fields of a message, values of an enum, methods of a service."""


@dataclass(frozen=True, slots=True)
class Comments:
    """Comment of each name: `Message`, `Message.field`, `Enum.VALUE`, `/acp.v1.Service/Method`."""

    texts: dict[str, str]

    def of(self, name: str) -> str:
        """The comment as one line; empty where there is none."""
        return self.texts.get(name, "")


def generate(root: Path, out: Path) -> Comments | None:
    """Write acp_pb2.py and .pyi below `out`; None (protoc has said why) when the source is refused.

    The repository root is protoc's include path, so that the module is imported as it lies there.
    """
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as scratch:
        described = Path(scratch) / "acp.binpb"
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={root}",
                f"--python_out={out}",
                f"--pyi_out={out}",
                f"--descriptor_set_out={described}",
                "--include_source_info",
                str(root / SOURCE),
            ]
        )
        if status:
            return None
        found = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes())
    return Comments(dict(_comments(found.file[0])))


def _comments(file: Any) -> Iterator[tuple[str, str]]:
    for location in file.source_code_info.location:
        text = location.leading_comments or location.trailing_comments
        name = _name(file, tuple(location.path))
        if name and text:
            yield name, " ".join(text.split())


def _name(file: Any, path: tuple[int, ...]) -> str:
    """What a source location stands for; empty for what is not documented (parts of a field)."""
    match path:
        case (part, index) if part == _FILE_MESSAGES:
            return str(file.message_type[index].name)
        case (part, index) if part == _FILE_ENUMS:
            return str(file.enum_type[index].name)
        case (part, index, inner, place) if inner == _INNER and part == _FILE_MESSAGES:
            message = file.message_type[index]
            return f"{message.name}.{message.field[place].name}"
        case (part, index, inner, place) if inner == _INNER and part == _FILE_ENUMS:
            enum = file.enum_type[index]
            return f"{enum.name}.{enum.value[place].name}"
        case (part, index, inner, place) if inner == _INNER and part == _FILE_SERVICES:
            service = file.service[index]
            return f"/{file.package}.{service.name}/{service.method[place].name}"
        case _:
            return ""
