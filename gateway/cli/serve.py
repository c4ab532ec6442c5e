"""`acp serve`: settings from flags, environment and file, then the gateway until told to stop."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output, wrong_use

if TYPE_CHECKING:
    from gateway.config.load import LoadedSettings


app = typer.Typer()


@app.command("serve")
def serve(
    data_dir: Annotated[
        Path | None, typer.Option(help="Journal, registry, tokens, trajectories. [.data]")
    ] = None,
    http: Annotated[str | None, typer.Option(help="host:port, 0 = any. [127.0.0.1:8080]")] = None,
    grpc: Annotated[str | None, typer.Option(help="host:port, 0 = any. [127.0.0.1:8081]")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as YAML or TOML; see --print-config.")
    ] = None,
    behind_tls_proxy: Annotated[
        bool, typer.Option("--behind-tls-proxy", help="A proxy ends TLS in front of this bind.")
    ] = False,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the settings that hold, and stop.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Serve the gateway; prints one JSON line once it is ready. SIGTERM drains, a second one stops.

    Every setting can also stand in a file (--config) or in the environment: journal.sync is
    ACP_JOURNAL_SYNC. Flags win over the environment, the environment over the file.
    """
    from gateway.config.load import SettingsError, load_settings

    out = Output(json=as_json)
    flags: dict[str, object] = {
        "data_dir": data_dir,
        "http.bind": http,
        "grpc.bind": grpc,
        "auth.behind_tls_proxy": behind_tls_proxy or None,
        "log.level": log_level,
    }
    try:
        loaded = load_settings(environ=os.environ, file=config, flags=flags)
    except SettingsError as problem:
        wrong_use(out, "\n".join(f"settings: {found}" for found in problem.problems))
    if print_config:
        _print(out, loaded)
        return
    from gateway.assembly import serve as serve_gateway
    from gateway.assembly.masking import masker_of

    try:
        masker_of(loaded.settings, loaded.sources)
    except SettingsError as problem:
        wrong_use(out, "\n".join(f"settings: {found}" for found in problem.problems))
    raise typer.Exit(serve_gateway(loaded.settings))


def _print(out: Output, loaded: "LoadedSettings") -> None:
    """Every key with its value and where it came from; as JSON the tree that a file would hold."""
    from gateway.config.load import as_dict, keys

    tree = as_dict(loaded.settings)
    if out.json:
        out.value(tree)
        return
    out.rows(
        keys(),
        columns=("setting", "value", "from"),
        cells=lambda key: (key, _shown(tree, key), loaded.source_of(key)),
    )


def _shown(tree: dict[str, object], key: str) -> str:
    value: object = tree
    for name in key.split("."):
        assert isinstance(value, dict)
        value = value[name]
    return "-" if value is None else str(value)
