"""What keeps the gateway upright under more than it can do: demand, lines, the gate in front."""

from acp_spec.model.enums import StepType
from gateway.config.settings import Settings
from gateway.runtime.admitting import Admitting
from gateway.runtime.demand import Demand
from gateway.runtime.driver import Driver
from gateway.runtime.intake import Intake
from gateway.runtime.parameters import LiveParameters
from gateway.runtime.queueing import Admission
from gateway.runtime.registry import Registry


def demand(settings: Settings, registry: Registry, *, parameters: LiveParameters) -> Demand:
    """What sessions ask of each place, and the weights of the tenants that wait there."""
    weights = settings.overload.tenant_weights
    return Demand(
        registry,
        rules_for=parameters.rules_for,
        weight_of=lambda tenant: weights.get(tenant, 1.0),
    )


def listen(settings: Settings, *, admitting: Admitting, driver: Driver) -> None:
    """Who is told of an attempt that must leave its queue, and of a session that ended."""
    queues = settings.limits.queues
    admitting.step_priority = {
        StepType.PLAN: queues.plan.priority,
        StepType.TOOL: queues.tool.priority,
        StepType.LLM: queues.llm.priority,
    }
    admitting.admission.drop = admitting.drop
    driver.on_session_end = admitting.admission.demand.ended


def intake(admission: Admission, driver: Driver, *, parameters: LiveParameters) -> Intake:
    """The gate in front of new sessions."""
    return Intake(admission, driver.catalog, law=lambda: parameters.current.parameters.overload)
