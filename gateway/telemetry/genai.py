"""OpenTelemetry's GenAI conventions as one table: what we know of a span, and its name there.

Nothing else in the gateway spells a `gen_ai.*` name or an operation of theirs. The conventions are
not stable and rename attributes: a newer version of them is a change of this file alone. What they
have no name for is told under `acp.*`. A fact that is unknown is left out, never guessed.
"""

import enum
from collections.abc import Mapping

from gateway.telemetry.spans import AttributeValue

CONVENTION = "0.1.0"
"""Of semantic-conventions-genai, the conventions' own repository since they left the core."""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""Of the core conventions (`error.type`, `service.*`); the GenAI ones have no schema file yet."""

PROVIDER = "acp"
"""Who is asked: a component over ACP. Which vendor stands behind it, the gateway does not know."""

TOOL_TYPE = "extension"
"""Theirs for a tool that runs outside the model and acts on other systems."""

SESSION = "SESSION"


class Fact(enum.Enum):
    """What may be known of a session or an attempt, in our words."""

    OPERATION = enum.auto()
    PROVIDER = enum.auto()
    CONVERSATION = enum.auto()
    AGENT = enum.auto()
    AGENT_VERSION = enum.auto()
    TOOL = enum.auto()
    TOOL_TYPE = enum.auto()
    TOOL_CALL = enum.auto()
    MODEL_ASKED = enum.auto()
    MODEL_ANSWERED = enum.auto()
    INPUT_TOKENS = enum.auto()
    OUTPUT_TOKENS = enum.auto()
    ERROR = enum.auto()


ATTRIBUTES: Mapping[Fact, str] = {
    Fact.OPERATION: "gen_ai.operation.name",
    Fact.PROVIDER: "gen_ai.provider.name",
    Fact.CONVERSATION: "gen_ai.conversation.id",
    Fact.AGENT: "gen_ai.agent.name",
    Fact.AGENT_VERSION: "gen_ai.agent.version",
    Fact.TOOL: "gen_ai.tool.name",
    Fact.TOOL_TYPE: "gen_ai.tool.type",
    Fact.TOOL_CALL: "gen_ai.tool.call.id",
    Fact.MODEL_ASKED: "gen_ai.request.model",
    Fact.MODEL_ANSWERED: "gen_ai.response.model",
    Fact.INPUT_TOKENS: "gen_ai.usage.input_tokens",
    Fact.OUTPUT_TOKENS: "gen_ai.usage.output_tokens",
    Fact.ERROR: "error.type",
}

OPERATIONS: Mapping[str, str] = {
    SESSION: "invoke_workflow",
    "PLAN": "plan",
    "EXECUTE": "execute_tool",
    "OBSERVE": "invoke_agent",
    "REFLECT": "invoke_agent",
}
"""A session and the four roles of a call; a workflow's name is an agent's name to them."""


def attributes(facts: Mapping[Fact, AttributeValue | None]) -> dict[str, AttributeValue]:
    """The facts that are known, under the names of the conventions."""
    return {ATTRIBUTES[fact]: value for fact, value in facts.items() if value not in (None, "")}


def span_name(operation: str, subject: str) -> str:
    """`{operation} {subject}`, as every span of theirs is called; few values, never an id."""
    return f"{operation} {subject}" if subject else operation
