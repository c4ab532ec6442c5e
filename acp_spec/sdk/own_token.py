"""The token of a component, from its environment.

`ACP_COMPONENT_TOKEN` is the component's alone; `ACP_TOKEN`, which `acp` commands show too, counts
where it is not set, so that a shell of an operator can run both without mixing them up.
"""

from collections.abc import Mapping
from typing import Final

OWN: Final = "ACP_COMPONENT_TOKEN"
SHARED: Final = "ACP_TOKEN"


def own_token(environ: Mapping[str, str]) -> str | None:
    """The token to show to a gateway, and to demand of callers; None where there is none."""
    return environ.get(OWN) or environ.get(SHARED) or None
