"""What the package promises by name is frozen: a change here is a change of the promise."""

import acp_spec


def test_the_public_names_are_these() -> None:
    assert sorted(acp_spec.__all__) == [
        "AsyncGatewayClient",
        "Call",
        "Component",
        "Effect",
        "FileOutcomes",
        "GatewayClient",
        "GrpcComponentClient",
        "HttpComponentClient",
        "Idempotency",
        "InProcess",
        "JsonText",
        "Kind",
        "ManualClock",
        "SideEffect",
        "Verdict",
        "build_context",
    ]
