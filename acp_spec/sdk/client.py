"""One interface to a component, whatever the transport: HTTP, gRPC or in process.

A client makes one attempt: no hidden retries, because whether a call may be sent again is the
gateway's decision. Failures of the transport come back as `ErrorBody` values like the component's
own.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    ObserveRequest,
    ObserveResponse,
    OperationState,
    PlanRequest,
    PlanResponse,
    Progress,
    ReflectRequest,
    ReflectResponse,
)
from acp_spec.model.card import Card, Health

StreamItem: TypeAlias = "Progress | ExecuteResponse | ErrorBody"


class ComponentClient(Protocol):
    """Every method answers with its response or with an `ErrorBody`; none raises for a peer's
    fault.
    """

    async def describe(self) -> Card | ErrorBody: ...

    async def health(self) -> Health | ErrorBody: ...

    async def plan(self, request: PlanRequest) -> PlanResponse | ErrorBody: ...

    async def execute(self, request: ExecuteRequest) -> ExecuteResponse | ErrorBody: ...

    def execute_stream(self, request: ExecuteRequest) -> AsyncIterator[StreamItem]:
        """Progress while it runs; the last item is the response or the error."""
        ...

    async def observe(self, request: ObserveRequest) -> ObserveResponse | ErrorBody: ...

    async def reflect(self, request: ReflectRequest) -> ReflectResponse | ErrorBody: ...

    async def cancel(self, request: CancelRequest) -> CancelResponse | ErrorBody: ...

    async def get_operation(self, call_id: str) -> OperationState | ErrorBody: ...

    async def cancel_operation(self, call_id: str) -> CancelResponse | ErrorBody: ...

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
