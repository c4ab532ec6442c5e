"""What may be asked of the gateway under test: its addresses, and what its owner's fixtures give.

A gateway serves the whole of section 6, so that nothing of it is undeclared; what needs tokens, a
gRPC address or a restart is not tested without them, which is a failure with its own reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from conformance_tests.messages.tree import Value
from conformance_tests.runner.fixtures import Fixtures
from conformance_tests.runner.subject import Subject, Untestable


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySubject:
    """Answers the questions of `expansion.plan`."""

    fixtures: Fixtures
    has_grpc: bool
    can_restart: bool

    def need(self, what: str) -> None:
        """Raises Untestable; KeyError for a wrong name."""
        if not _NEEDS[what](self):
            raise Untestable(_MISSING[what])

    def source(self, name: str) -> list[tuple[str, Value]]:
        """Cases of a gateway list their variants themselves."""
        raise KeyError(name)

    def as_component(self) -> Subject:
        """For judges, which ask a component's declarations."""
        return Subject({}, self.fixtures, allow_side_effects=False)


_NEEDS: Final[dict[str, Callable[[GatewaySubject], object]]] = {
    "grpc": lambda subject: subject.has_grpc,
    "restart": lambda subject: subject.can_restart,
    "tokens": lambda subject: all(
        (
            subject.fixtures.tokens.admin,
            subject.fixtures.tokens.submit,
            subject.fixtures.tokens.component,
            subject.fixtures.tokens.other_tenant,
        )
    ),
    "credential": lambda subject: subject.fixtures.credential.name,
    "exposed": lambda subject: subject.fixtures.exposed,
}
_MISSING: Final = {
    "grpc": "give the gateway's gRPC address as a second --target grpc://host:port",
    "restart": "give a `restart` command in --fixtures that kills the gateway and starts it again",
    "tokens": "give tokens admin, submit, component and other_tenant in --fixtures",
    "credential": "give `credential` {name, secret} in --fixtures, as the gateway is configured",
    "exposed": "say `exposed: true` in --fixtures and give tokens: a gateway beyond loopback",
}
