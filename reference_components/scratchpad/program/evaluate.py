"""Runs in the sandbox: `{source, input}` on standard input, `{result, printed}` on standard output.

Needs nothing but Python: it knows neither ACP nor who runs it.
"""

import contextlib
import io
import json
import sys


def main() -> None:
    asked = json.load(sys.stdin)
    names: dict[str, object] = {"input": asked.get("input"), "result": None}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(asked["source"], "source", "exec"), names)  # the sandbox holds it
    json.dump({"result": names["result"], "printed": printed.getvalue()}, sys.stdout)


if __name__ == "__main__":
    main()
