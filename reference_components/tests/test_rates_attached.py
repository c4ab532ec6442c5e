"""The TypeScript component attached: it opens no port, and a killed gateway finds it again."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reference_components.launcher import Launcher

ACP = Path(sys.executable).parent / "acp"
STOP_S = 20.0
WORKFLOW = """
workflow: fx
version: 1.0.0
steps:
  - name: act
    role: execute
    component: rates
    action: rates.convert
    input_mapping: {amount: input.amount, from: input.from, to: input.to}
output: act.output
"""
QUESTION = '{"workflow":"fx","input":{"amount":9007199254740993.10,"from":"EUR","to":"USD"}}'
ANSWER = '"amount":9007199254740993.10,"rate":1.083700,"converted":9761101832362814.22'


@dataclass
class Stage:
    """Processes of one test, and the folder they share."""

    folder: Path
    launcher: Launcher
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def gateway(self, grpc: str = "127.0.0.1:0") -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
        flags = ("--data-dir", str(self.folder / "data"), "--http", "127.0.0.1:0", "--grpc", grpc)
        process = self._start([str(ACP), "serve", *flags])
        return process, self.said(process)

    def rates(self, gateway: str, **more: str) -> subprocess.Popen[bytes]:
        place = self.launcher.build("rates")
        environ = {
            "ACP_ATTACH": f"grpc://{gateway}",
            "ACP_INSTANCE": "one",
            "ACP_PROTO": str(place / "proto" / "v1" / "acp.proto"),
            "RATES_CARD": str(place / "card.json"),
            "RATES_TABLE": str(place / "rates.json"),
            **more,
        }
        return self._start(["node", str(place / "dist" / "main.js")], **environ)

    def said(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """The next line of its standard output."""
        assert process.stdout is not None
        found: dict[str, Any] = json.loads(process.stdout.readline())
        return found

    def _start(self, command: list[str], **environ: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **environ}
            )
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def stage(tmp_path: Path, launcher: Launcher, needs: Callable[[str], Path]) -> Iterator[Stage]:
    for tool in ("node", "npm"):
        needs(tool)
    made = Stage(tmp_path, launcher)
    yield made
    made.end()


def ask(url: str, body: str, *, method: str = "POST", kind: str = "application/json") -> str:
    headers = {"content-type": kind, "prefer": "wait=10"}
    request = urllib.request.Request(url, body.encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def test_decimals_pass_without_a_port_and_a_killed_gateway_finds_it_again(
    stage: Stage, free_port: Callable[[], int]
) -> None:
    gateway, where = stage.gateway(f"127.0.0.1:{free_port()}")
    rates = stage.rates(where["grpc"])
    assert stage.said(rates)["ready"] is True
    path = f"{where['http']}/v1/workflows/fx/versions/1.0.0"
    ask(path, WORKFLOW, method="PUT", kind="application/yaml")
    assert ANSWER in ask(f"{where['http']}/v1/sessions", QUESTION)
    gateway.kill()
    gateway.wait(STOP_S)
    _, where = stage.gateway(where["grpc"])
    assert stage.said(rates)["ready"] is True, "it dialled again"
    assert ANSWER in ask(f"{where['http']}/v1/sessions", QUESTION)
    wrong = QUESTION.replace("EUR", "XXX")
    assert "UNKNOWN_CURRENCY" in ask(f"{where['http']}/v1/sessions", wrong)
    rates.terminate()
    assert rates.wait(STOP_S) == 0
    with urllib.request.urlopen(f"{where['http']}/v1/components", timeout=10) as answer:
        assert json.loads(answer.read()) == {}


def test_a_newer_incarnation_of_the_instance_ends_the_older_process(stage: Stage) -> None:
    _, where = stage.gateway()
    older = stage.rates(where["grpc"])
    assert stage.said(older)["ready"] is True
    newer = stage.rates(where["grpc"])
    assert stage.said(newer)["ready"] is True
    assert older.wait(STOP_S) == 1, "it was told why, and did not dial again"
    assert newer.poll() is None
