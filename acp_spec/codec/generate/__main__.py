"""Writes acp_pb2, the JSON Schemas and the OpenAPI documents; removes schemas of no message."""

import json
import sys
from pathlib import Path

from acp_spec.codec.generate import protobuf, requirements

ROOT = Path(__file__).parents[3]


def main() -> int:
    """Write everything; 1 when protoc refuses the source."""
    written = write(ROOT)
    if not written:
        return 1
    for old in (ROOT / "acp_spec" / "schema").glob("[A-Z]*.json"):
        if old not in written:
            old.unlink()
    sys.stdout.write(f"gen: acp_pb2, {len(written)} documents\n")
    return 0


def write(out: Path) -> list[Path]:
    """Write acp_pb2 and the documents below `out`, which has the repository's layout."""
    comments = protobuf.generate(ROOT, out)
    if comments is None:
        return []
    # Only now: these import the acp_pb2 that has just been written.
    from acp_spec.codec.generate import openapi, schemas

    spec = out / "acp_spec"
    documents = {spec / "schema" / f"{name}.json": body for name, body in schemas.all(comments)}
    for name, body in openapi.all(comments):
        documents[spec / "openapi" / f"{name}.v1.json"] = body
    for path, body in documents.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    binding = spec / "requirements" / "v1.yaml"
    binding.parent.mkdir(exist_ok=True)
    text = (ROOT / "acp_spec" / "SPEC.md").read_text(encoding="utf-8")
    binding.write_text(requirements.to_yaml(text), encoding="utf-8")
    return [*documents, binding]


if __name__ == "__main__":
    sys.exit(main())
