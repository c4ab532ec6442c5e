"""The live governance parameters of one gateway: what holds now, for which target, by version."""

from gateway.governance.parameters import Parameters, rules_for
from gateway.governance.rules import Rules
from gateway.runtime.targets import Target


class LiveParameters:
    """`current` and its `version`; rules are made once per card and version."""

    def __init__(self, defaults: Parameters) -> None:
        self.current = defaults
        self.version = 1
        self._rules: dict[str, Rules] = {}

    def rules_for(self, target: Target) -> Rules:
        """What holds for calls of this target now."""
        found = self._rules.get(target.digest)
        if found is None:
            found = rules_for(self.current, target.card, version=self.version)
            self._rules[target.digest] = found
        return found
