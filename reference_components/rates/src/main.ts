/** Starts the component on loopback, at the port in ACP_PORT; SIGTERM lets running calls end. */

import { ServerCredentials } from "@grpc/grpc-js";
import { readCard } from "./card.js";
import { Rates } from "./rates.js";
import { makeServer } from "./server.js";

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`the environment variable ${name} is missing`);
  return value;
}

const server = makeServer({
  proto: setting("ACP_PROTO"),
  card: readCard(setting("RATES_CARD")),
  actions: new Rates(setting("RATES_TABLE")).actions,
});

server.bindAsync(`127.0.0.1:${setting("ACP_PORT")}`, ServerCredentials.createInsecure(), (problem) => {
  if (problem !== null) throw problem;
});

process.once("SIGTERM", () => server.tryShutdown(() => process.exit(0)));
