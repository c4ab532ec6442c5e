/** The gRPC side: services acp.v1.Component and acp.v1.Executor, health and reflection. */

import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";
import { ReflectionService } from "@grpc/reflection";
import { HealthImplementation } from "grpc-health-check";
import { Failure, invalid } from "./failure.js";
import { FinishedCalls } from "./finished.js";
import { BadJson, isObject, JsonObject, parse, write } from "./json.js";

export const LOADING: loader.Options = {
  keepCase: true,
  longs: Number, // durations and attempts stay far below 2^53
  enums: String,
  defaults: true,
};
const MAX_REQUEST_BYTES = 64 * 1024; // as in card.json
const SLACK_BYTES = 64 * 1024; // beyond it gRPC itself refuses, without our reason

interface Context {
  session_id: string;
  lineage_id: string;
  call_id: string;
  attempt: number;
  body_digest: string;
  timeout_ms: number;
}

export interface ExecuteRequest {
  context: Context | null;
  action: string;
  arguments: Uint8Array;
}

/** What came over the wire: a message with its size, or the reason why it is none. */
interface Received<T> {
  message?: T;
  bytes: number;
}

type Unary<T> = grpc.ServerUnaryCall<Received<T>, unknown>;
export type Action = (args: JsonObject) => JsonObject;

export interface Settings {
  proto: string;
  card: object;
  actions: ReadonlyMap<string, Action>;
}

/** A server that is not bound yet. */
export function makeServer({ proto, card, actions }: Settings): grpc.Server {
  const definition = loader.loadSync(proto, LOADING);
  const errorBody = definition["acp.v1.ErrorBody"] as loader.MessageTypeDefinition<object, object>;
  const finished = new FinishedCalls();

  const answer =
    <T>(work: (message: T) => object): grpc.handleUnaryCall<Received<T>, unknown> =>
    (call, reply) => {
      try {
        reply(null, work(checked(call)));
      } catch (problem) {
        reply(toStatus(problem, errorBody));
      }
    };

  const execute = (request: ExecuteRequest, metadata: grpc.Metadata): object => {
    try {
      return run(request, actions, metadata.get("idempotency-key")[0]);
    } finally {
      finished.add(request.context?.call_id ?? ""); // a call that failed has ended too
    }
  };

  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_REQUEST_BYTES + SLACK_BYTES,
  });
  server.addService(service(definition, "acp.v1.Component"), {
    Describe: answer(() => card),
    Health: answer(() => ({ status: "HEALTH_STATUS_SERVING" })),
    Cancel: answer((request: { call_id: string }) => finished.cancelled(request.call_id)),
    GetOperation: answer(noOperation),
    CancelOperation: answer(noOperation),
  });
  server.addService(service(definition, "acp.v1.Executor"), {
    Execute: (call: Unary<ExecuteRequest>, reply: grpc.sendUnaryData<unknown>) =>
      answer((request: ExecuteRequest) => execute(request, call.metadata))(call, reply),
    ExecuteStream: (call: grpc.ServerWritableStream<Received<ExecuteRequest>, unknown>) => {
      try {
        call.write({ response: execute(checked(call), call.metadata) });
        call.end();
      } catch (problem) {
        call.emit("error", toStatus(problem, errorBody));
      }
    },
  });
  new HealthImplementation({ "": "SERVING", "acp.v1.Component": "SERVING", "acp.v1.Executor": "SERVING" })
    .addToServer(server);
  new ReflectionService(definition).addToServer(server);
  return server;
}

/** The response to a request, or a Failure that is thrown. */
export function run(
  request: ExecuteRequest,
  actions: ReadonlyMap<string, Action>,
  key?: grpc.MetadataValue,
): object {
  const { context } = request;
  if (!context?.call_id || !context.session_id || !context.lineage_id) {
    throw invalid("context.call_id, session_id or lineage_id is missing");
  }
  if (context.attempt < 1 || context.timeout_ms < 1) {
    throw invalid("context.attempt and context.timeout_ms are at least 1");
  }
  if (!/^[0-9a-f]{64}$/.test(context.body_digest)) {
    throw invalid("context.body_digest is not 64 hex digits");
  }
  if (key !== undefined && key !== context.call_id) {
    throw invalid("the metadata idempotency-key differs from context.call_id");
  }
  if (request.action === "") throw invalid("action is missing");
  const action = actions.get(request.action);
  if (action === undefined) throw new Failure("NOT_FOUND", `there is no action ${request.action}`);
  const output = action(readArguments(request.arguments));
  return { output: Buffer.from(write(output)), side_effect: "SIDE_EFFECT_NONE" };
}

function readArguments(bytes: Uint8Array): JsonObject {
  let value;
  try {
    value = bytes.length === 0 ? undefined : parse(bytes);
  } catch (problem) {
    if (problem instanceof BadJson) throw invalid(`arguments are not JSON: ${problem.message}`);
    throw problem;
  }
  if (!isObject(value)) throw invalid("arguments are not an object");
  return value;
}

function checked<T>(call: { request: Received<T>; metadata: grpc.Metadata }): T {
  const version = call.metadata.get("acp-version")[0];
  if (version !== undefined && String(version).split(".")[0] !== "1") {
    throw new Failure("VERSION_UNSUPPORTED", "supported acp-version: 1.0");
  }
  if (call.request.bytes > MAX_REQUEST_BYTES) {
    throw new Failure("PAYLOAD_TOO_LARGE", `the request exceeds ${MAX_REQUEST_BYTES} bytes`);
  }
  if (call.request.message === undefined) throw invalid("the request is not the message it should be");
  return call.request.message;
}

/** The service's methods, taught to note a message's size and to leave a broken one to us. */
function service(definition: loader.PackageDefinition, name: string): grpc.ServiceDefinition {
  const methods = definition[name] as grpc.ServiceDefinition;
  const taught = Object.entries(methods).map(([method, was]) => {
    const requestDeserialize = (bytes: Buffer): Received<unknown> => {
      try {
        return { message: was.requestDeserialize(bytes), bytes: bytes.length };
      } catch {
        return { bytes: bytes.length };
      }
    };
    return [method, { ...was, requestDeserialize }] as const;
  });
  return Object.fromEntries(taught);
}

function noOperation(request: { call_id: string }): never {
  throw new Failure("NOT_FOUND", `there is no operation ${request.call_id}`);
}

function toStatus(
  problem: unknown,
  errorBody: loader.MessageTypeDefinition<object, object>,
): Partial<grpc.StatusObject> {
  if (!(problem instanceof Failure)) console.error(problem);
  const failure = problem instanceof Failure ? problem : new Failure("INTERNAL", "internal error");
  const metadata = new grpc.Metadata();
  metadata.set("acp-error-bin", errorBody.serialize(failure.body));
  return { code: failure.grpcStatus, details: failure.message, metadata };
}
