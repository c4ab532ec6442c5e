"""What came back for one request, the same on both bindings, with the bytes beside it."""

from dataclasses import dataclass, field

from conformance_tests.messages.tree import Tree, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`tree` is the message, or the error body. `status` is HTTP's, `grpc` the canonical name."""

    binding: str
    do: str
    message: str
    ok: bool
    tree: Tree | None
    status: int = 0
    grpc: str = ""
    grpc_message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    trailer: bytes | None = None
    body: bytes = b""
    items: tuple[Tree | None, ...] = ()
    elapsed_ms: float = 0.0

    @property
    def error(self) -> Tree | None:
        """The error of the body or of the trailer, if there is a readable one."""
        found = self.tree.get("error") if self.tree and not self.ok else None
        return found if isinstance(found, dict) else None

    @property
    def code(self) -> str:
        """The error's code; over gRPC the status tells it when no trailer does."""
        stated = self.error.get("code") if self.error else None
        if stated is None and self.binding == "grpc" and not self.ok:
            return self.grpc
        return str(stated or "")

    @property
    def reason(self) -> str:
        return str((self.error or {}).get("reason") or "")

    @property
    def side_effect(self) -> str:
        """Of the error, or of the success."""
        holder = self.error if not self.ok else self.tree
        return str((holder or {}).get("side_effect") or "")

    @property
    def said(self) -> str:
        """One line for a person: what this answer is."""
        if self.ok:
            return f"success{f' ({self.status})' if self.status else ''}"
        carried = {"http": f"HTTP {self.status}", "grpc": f"gRPC {self.grpc}"}
        status = carried.get(self.binding, self.binding)
        return f"{status} {self.code or 'without a code'} {self.reason}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request with its answer, as a watch sees it. `wrong`: it was wrong on purpose."""

    case: str
    request: Tree
    answer: Answer
    wrong: bool
    accepts_stream: bool = False
    secrets: tuple[str, ...] = ()

    @property
    def context(self) -> Tree:
        found: Value = self.request.get("context")
        return found if isinstance(found, dict) else {}
