/**
 * Starts the component: on loopback at the port in ACP_PORT, or, when ACP_ATTACH says where to,
 * attached to a gateway without any port. SIGTERM lets running calls end.
 */

import { hostname } from "node:os";
import { ServerCredentials } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { Attachment } from "./attach.js";
import { readCard } from "./card.js";
import { Rates } from "./rates.js";
import { ExecuteRequest, LOADING, makeServer, run } from "./server.js";

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`the environment variable ${name} is missing`);
  return value;
}

const card = readCard(setting("RATES_CARD"));
const { actions } = new Rates(setting("RATES_TABLE"));

function serve(): void {
  const server = makeServer({ proto: setting("ACP_PROTO"), card, actions });
  server.bindAsync(`127.0.0.1:${setting("ACP_PORT")}`, ServerCredentials.createInsecure(), (problem) => {
    if (problem !== null) throw problem;
  });
  process.once("SIGTERM", () => server.tryShutdown(() => process.exit(0)));
}

function attach(gateway: string): void {
  // Without defaults: a frame has exactly the member that was sent.
  const frames = loadSync(setting("ACP_PROTO"), { ...LOADING, defaults: false });
  const attachment = new Attachment({
    proto: frames,
    gateway: gateway.replace(/^grpc:\/\//, ""),
    token: process.env["ACP_COMPONENT_TOKEN"] || process.env["ACP_TOKEN"],
    instance: process.env["ACP_INSTANCE"] ?? `${hostname()}-${process.pid}`,
    card,
    execute: (call) => run(withDefaults(call), actions),
  });
  attachment.run((status) => process.exit(status));
  process.once("SIGTERM", () => attachment.leave());
}

/** Absent fields as their defaults, which frames are read without. */
function withDefaults(call: { context?: unknown }): ExecuteRequest {
  const context = call.context && { ...EMPTY_CONTEXT, ...call.context };
  return { action: "", arguments: new Uint8Array(), ...call, context } as ExecuteRequest;
}

const EMPTY_CONTEXT = { session_id: "", lineage_id: "", call_id: "", attempt: 0, body_digest: "", timeout_ms: 0 };
const gateway = process.env["ACP_ATTACH"];
if (gateway === undefined || gateway === "") serve();
else attach(gateway);
