"""The gateway's own operator API: everything under `/v1` that is not part of ACP v1's table.

Each area is one module shaped like `token_routes`: routes, builders and operations by name. The
areas stand in this one list; how a request is read, allowed and answered is the same as everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from acp_spec.bindings.routes import Route
from gateway.transports.archive_routes import (
    ARCHIVE_BUILDERS,
    ARCHIVE_OPERATIONS,
    ARCHIVE_ROUTES,
)
from gateway.transports.board_routes import BOARD_BUILDERS, BOARD_OPERATIONS, BOARD_ROUTES
from gateway.transports.contract_routes import (
    CONTRACT_BUILDERS,
    CONTRACT_OPERATIONS,
    CONTRACT_ROUTES,
)
from gateway.transports.dashboard_routes import (
    DASHBOARD_BUILDERS,
    DASHBOARD_OPERATIONS,
    DASHBOARD_ROUTES,
)
from gateway.transports.fallback_routes import (
    FALLBACK_BUILDERS,
    FALLBACK_OPERATIONS,
    FALLBACK_ROUTES,
)
from gateway.transports.feedback_routes import (
    FEEDBACK_BUILDERS,
    FEEDBACK_OPERATIONS,
    FEEDBACK_ROUTES,
)
from gateway.transports.governance_routes import (
    GOVERNANCE_BUILDERS,
    GOVERNANCE_OPERATIONS,
    GOVERNANCE_ROUTES,
)
from gateway.transports.http_routes import Builder
from gateway.transports.lineage_routes import (
    LINEAGE_BUILDERS,
    LINEAGE_OPERATIONS,
    LINEAGE_ROUTES,
)
from gateway.transports.operations import Operation
from gateway.transports.records_routes import (
    RECORDS_BUILDERS,
    RECORDS_OPERATIONS,
    RECORDS_ROUTES,
)
from gateway.transports.review_routes import (
    REVIEW_BUILDERS,
    REVIEW_OPERATIONS,
    REVIEW_ROUTES,
)
from gateway.transports.rewards_routes import (
    REWARDS_BUILDERS,
    REWARDS_OPERATIONS,
    REWARDS_ROUTES,
)
from gateway.transports.rollout_routes import (
    ROLLOUT_BUILDERS,
    ROLLOUT_OPERATIONS,
    ROLLOUT_ROUTES,
)
from gateway.transports.semantics_routes import (
    SEMANTICS_BUILDERS,
    SEMANTICS_OPERATIONS,
    SEMANTICS_ROUTES,
)
from gateway.transports.token_routes import TOKEN_BUILDERS, TOKEN_OPERATIONS, TOKEN_ROUTES
from gateway.transports.workflow_routes import (
    WORKFLOW_BUILDERS,
    WORKFLOW_OPERATIONS,
    WORKFLOW_ROUTES,
)


@dataclass(frozen=True, slots=True)
class Area:
    """One subject of the operator API; the keys of both tables are the routes' names."""

    routes: tuple[Route, ...]
    builders: Mapping[str, Builder]
    operations: Mapping[str, Operation]


AREAS: Final[tuple[Area, ...]] = (
    Area(TOKEN_ROUTES, TOKEN_BUILDERS, TOKEN_OPERATIONS),
    Area(BOARD_ROUTES, BOARD_BUILDERS, BOARD_OPERATIONS),
    Area(CONTRACT_ROUTES, CONTRACT_BUILDERS, CONTRACT_OPERATIONS),
    Area(ROLLOUT_ROUTES, ROLLOUT_BUILDERS, ROLLOUT_OPERATIONS),
    Area(GOVERNANCE_ROUTES, GOVERNANCE_BUILDERS, GOVERNANCE_OPERATIONS),
    Area(SEMANTICS_ROUTES, SEMANTICS_BUILDERS, SEMANTICS_OPERATIONS),
    Area(FALLBACK_ROUTES, FALLBACK_BUILDERS, FALLBACK_OPERATIONS),
    Area(FEEDBACK_ROUTES, FEEDBACK_BUILDERS, FEEDBACK_OPERATIONS),
    Area(REWARDS_ROUTES, REWARDS_BUILDERS, REWARDS_OPERATIONS),
    Area(REVIEW_ROUTES, REVIEW_BUILDERS, REVIEW_OPERATIONS),
    Area(RECORDS_ROUTES, RECORDS_BUILDERS, RECORDS_OPERATIONS),
    Area(DASHBOARD_ROUTES, DASHBOARD_BUILDERS, DASHBOARD_OPERATIONS),
    Area(LINEAGE_ROUTES, LINEAGE_BUILDERS, LINEAGE_OPERATIONS),
    Area(ARCHIVE_ROUTES, ARCHIVE_BUILDERS, ARCHIVE_OPERATIONS),
    Area(WORKFLOW_ROUTES, WORKFLOW_BUILDERS, WORKFLOW_OPERATIONS),
)

OPERATOR_ROUTES: Final = tuple(route for area in AREAS for route in area.routes)
OPERATOR_BUILDERS: Final = {name: one for area in AREAS for name, one in area.builders.items()}
OPERATOR_OPERATIONS: Final = {name: one for area in AREAS for name, one in area.operations.items()}
