"""The gateway's groups of commands, found by the entry point `acp.commands`."""

import typer

from gateway.cli import components, doctor, lineage, run, serve, sessions, tokens, workflows

app = typer.Typer()
app.command("serve")(serve.serve)
app.command("run")(run.run)
app.add_typer(components.app, name="components")
app.add_typer(workflows.app, name="workflows")
app.add_typer(sessions.app, name="sessions")
app.command("lineage")(lineage.lineage)
app.add_typer(tokens.app, name="tokens")
app.command("doctor")(doctor.doctor)
