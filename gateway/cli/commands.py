"""The gateway's groups of commands, found by the entry point `acp.commands`."""

import typer

from gateway.cli import (
    components,
    contract,
    doctor,
    fallback,
    governance,
    insight,
    lineage,
    proposals,
    records,
    replay_traffic,
    rewards,
    rollout,
    run,
    semantics,
    serve,
    sessions,
    simulate,
    tokens,
    workflows,
)

app = typer.Typer()
app.add_typer(serve.app)
app.add_typer(run.app)
app.add_typer(components.app, name="components")
app.add_typer(workflows.app, name="workflows")
app.add_typer(sessions.app, name="sessions")
app.add_typer(lineage.app)
app.add_typer(governance.app, name="governance")
app.add_typer(tokens.app, name="tokens")
app.add_typer(proposals.app, name="proposals")
app.add_typer(proposals.audit, name="audit")
app.add_typer(semantics.app, name="semantics")
app.add_typer(records.app, name="records")
app.add_typer(rollout.app, name="rollout")
app.add_typer(insight.app, name="insight")
app.add_typer(replay_traffic.app)
app.add_typer(fallback.app, name="fallback")
app.add_typer(rewards.app, name="rewards")
app.add_typer(doctor.app)
app.add_typer(contract.app, name="contract")
app.add_typer(simulate.app)
