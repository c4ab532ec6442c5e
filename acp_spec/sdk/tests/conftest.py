"""Cases that must read the same on every binding take the fixture `binding`."""

import pytest

from acp_spec.sdk.tests.served import Binding


@pytest.fixture(params=list(Binding), ids=lambda binding: binding.value)
def binding(request: pytest.FixtureRequest) -> Binding:
    chosen: Binding = request.param
    return chosen
