"""Jobs on Restate: each a request to its ingress that waits for the handler's answer."""

import asyncio
import json

from job import measured, options
from load import answer, post


class Ingress:
    """Keep-alive connections to the server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def job(self, number: int) -> bytes:
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = connection
        writer.write(post("/Four/run", json.dumps(number).encode()))
        status, body = await answer(reader)
        if status != 200:
            raise RuntimeError(f"the ingress answered {status}: {body[:300]!r}")
        self._idle.append(connection)
        return body


if __name__ == "__main__":
    told = options()
    asyncio.run(measured(Ingress(int(told.engine.rsplit(":", 1)[1])).job, told))
