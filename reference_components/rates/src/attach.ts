/**
 * The other way to run (protocol: attach): this side dials the gateway and opens no port.
 * Two streams; every message is a list of frames, written once per turn of the loop. An answer is
 * kept until it is acknowledged, over any number of streams. Work here ends in the turn it begins
 * in, so nothing is ever in flight when a stream drops.
 */

import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";
import { Failure } from "./failure.js";
import { FinishedCalls } from "./finished.js";

const BACK_OFF_MS = 100;
const BACK_OFF_MS_MAX = 5_000;
const BEATS_MISSED_MAX = 3;
const CREDITS = 32; // where the card names no max_concurrency
const KEPT_ANSWERS_MAX = 1_000; // beyond it no credit is given, nothing is dropped
const LEAVE_MS = 1_000;

interface Key {
  call_id: string;
  attempt: number;
}

interface CallFrame {
  key: Key;
  execute?: { context: unknown; action: string; arguments: Uint8Array };
}

interface CallsFrame {
  call?: CallFrame;
  acknowledged?: { key: Key };
  chunk?: { key: Key; last: boolean };
}

interface ControlFrame {
  welcome?: { component_id: string; heartbeat_ms: number; attachment_id: string };
  cancel?: Key;
  drain?: object;
  heartbeat?: object;
  get_operation?: { call_id: string };
  cancel_operation?: { call_id: string };
}

interface Message<Frame> {
  frames: Frame[];
}

type Answer = { key: Key } & Record<string, unknown>;
type Stream = grpc.ClientDuplexStream<object, Message<unknown>>;

export interface Attaching {
  proto: loader.PackageDefinition;
  gateway: string;
  token: string | undefined;
  instance: string;
  card: object;
  /** The response (acp.v1.ExecuteResponse); throws Failure. */
  execute: (call: NonNullable<CallFrame["execute"]>) => object;
}

/** Frames that leave as one message at the end of this turn, or when the stream takes more. */
class Outbox {
  private frames: object[] = [];
  private isScheduled = false;

  constructor(
    private readonly stream: Stream,
    private readonly head: object,
  ) {}

  put(frame: object): void {
    this.frames.push(frame);
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.isScheduled = false;
    const frames = this.frames;
    this.frames = [];
    if (this.stream.writableEnded || this.stream.destroyed) return;
    if (this.stream.write({ ...this.head, frames })) return;
    this.isScheduled = true; // what gathers while the peer is slow leaves together
    this.stream.once("drain", () => {
      this.isScheduled = false;
      if (this.frames.length > 0) this.flush();
    });
  }
}

export class Attachment {
  private readonly incarnation = Date.now();
  private readonly answers = new Map<string, Answer>(); // not acknowledged yet
  private readonly finished = new FinishedCalls();
  private readonly credits: number;
  private owed = 0;
  private backOffMs = BACK_OFF_MS;
  private isLeaving = false;
  private control: Outbox | undefined;
  private calls: Outbox | undefined;
  private hangUp: () => void = () => undefined;

  constructor(private readonly to: Attaching) {
    const { limits } = to.card as { limits?: { max_concurrency?: number } };
    this.credits = limits?.max_concurrency || CREDITS;
  }

  /** Stay attached; dials again when a stream ends. `ended` gets the exit status. */
  run(ended: (status: number) => void): void {
    const again = (problem: grpc.ServiceError | undefined): void => {
      if (this.isLeaving) return ended(0);
      if (problem !== undefined && this.isRefusal(problem)) {
        console.error(`the gateway refuses: ${problem.details}`);
        return ended(1);
      }
      setTimeout(() => this.dial(again), this.backOffMs * Math.random());
      this.backOffMs = Math.min(BACK_OFF_MS_MAX, 2 * this.backOffMs);
    };
    this.dial(again);
  }

  /** Ask for no more calls, see the answers off, hang up. */
  leave(): void {
    this.isLeaving = true;
    this.control?.put({ drain: { grace_ms: LEAVE_MS } });
    setTimeout(() => this.hangUp(), LEAVE_MS);
  }

  private dial(ended: (problem: grpc.ServiceError | undefined) => void): void {
    const secrets = grpc.credentials.createInsecure();
    const client = new grpc.Client(this.to.gateway, secrets, { "grpc.enable_http_proxy": 0 });
    const control = this.open(client, "Control");
    let calls: Stream | undefined;
    let isOver = false;
    let timers: NodeJS.Timeout[] = [];
    const over = (problem?: grpc.ServiceError): void => {
      if (isOver) return;
      isOver = true;
      timers.forEach(clearInterval);
      this.control = this.calls = undefined;
      control.cancel();
      calls?.cancel();
      client.close();
      ended(problem);
    };
    this.hangUp = over;
    let heardAt = Date.now();
    control.on("error", over).on("end", over);
    control.on("data", (message: Message<ControlFrame>) => {
      heardAt = Date.now();
      for (const frame of message.frames) {
        if (frame.welcome === undefined) {
          this.hear(frame);
          continue;
        }
        const { heartbeat_ms, attachment_id } = frame.welcome;
        this.backOffMs = BACK_OFF_MS;
        calls = this.open(client, "Calls");
        calls.on("error", over).on("end", over);
        calls.on("data", (received: Message<CallsFrame>) => received.frames.forEach((f) => this.receive(f)));
        this.calls = new Outbox(calls, { attachment_id });
        this.attached();
        timers = [
          setInterval(() => this.control?.put({ heartbeat: {} }), heartbeat_ms),
          setInterval(() => {
            if (Date.now() - heardAt > BEATS_MISSED_MAX * heartbeat_ms) over();
          }, heartbeat_ms),
        ];
      }
    });
    this.control = new Outbox(control, {});
    this.control.put({
      hello: {
        instance_id: this.to.instance,
        incarnation: this.incarnation,
        card: this.to.card,
        finished_unacked: [...this.answers.values()].map((answer) => answer.key),
        acp_version: "1.0",
      },
    });
  }

  /** A new calls stream: grant what is free, deliver what was not acknowledged. */
  private attached(): void {
    this.owed = this.credits;
    this.grant();
    for (const answer of this.answers.values()) this.calls?.put({ answer });
    if (this.isLeaving) this.control?.put({ drain: { grace_ms: LEAVE_MS } });
    console.log(JSON.stringify({ ready: true, attached: this.to.gateway, pid: process.pid }));
  }

  private receive({ call, acknowledged, chunk }: CallsFrame): void {
    if (acknowledged !== undefined) {
      this.answers.delete(name(acknowledged.key));
      this.grant();
      if (this.isLeaving && this.answers.size === 0) this.hangUp();
    } else if (call !== undefined) {
      this.answer(call.key, () => {
        if (call.execute === undefined) throw new Failure("NOT_FOUND", "this component only executes");
        return { execute: this.to.execute(call.execute) };
      });
    } else if (chunk?.last === true) {
      // The card's limit is far below one frame: whatever comes in pieces is over it.
      this.answer(chunk.key, () => {
        throw new Failure("PAYLOAD_TOO_LARGE", "the request is over the limit of the card");
      });
    }
  }

  private answer(key: Key, work: () => object): void {
    if (this.answers.has(name(key))) return; // the same frame again: its answer is on its way
    let answer: Answer;
    try {
      answer = { key, ...work() };
    } catch (problem) {
      if (!(problem instanceof Failure)) console.error(problem);
      const failure = problem instanceof Failure ? problem : new Failure("INTERNAL", "internal error");
      answer = { key, error: failure.body };
    }
    this.answers.set(name(key), answer);
    this.finished.add(key.call_id);
    this.calls?.put({ answer });
    this.owed += 1;
    this.grant();
  }

  private grant(): void {
    if (this.owed === 0 || this.answers.size >= KEPT_ANSWERS_MAX) return;
    this.calls?.put({ credits: { granted: this.owed } });
    this.owed = 0;
  }

  private hear({ cancel, get_operation, cancel_operation, drain }: ControlFrame): void {
    if (cancel !== undefined) {
      const { call_id, attempt } = cancel;
      const response = this.finished.cancelled(call_id);
      this.control?.put({ cancelled: { key: { call_id, attempt }, response } });
    }
    const operation = get_operation ?? cancel_operation;
    if (operation !== undefined) {
      const { error } = new Failure("NOT_FOUND", "nothing runs long here").body as { error: object };
      this.control?.put({ operation: { call_id: operation.call_id, error } });
    }
    if (drain !== undefined && this.isLeaving && this.answers.size === 0) this.hangUp();
  }

  private open(client: grpc.Client, method: "Control" | "Calls"): Stream {
    const methods = this.to.proto["acp.v1.Attach"] as grpc.ServiceDefinition;
    const { path, requestSerialize, responseDeserialize } = methods[method] as grpc.MethodDefinition<
      object,
      Message<unknown>
    >;
    const metadata = new grpc.Metadata();
    metadata.set("acp-version", "1.0");
    if (this.to.token !== undefined) metadata.set("authorization", `Bearer ${this.to.token}`);
    return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
  }

  /** Whether dialling again would not help: the gateway said so. */
  private isRefusal(problem: grpc.ServiceError): boolean {
    const trailer = problem.metadata?.get("acp-error-bin")[0];
    if (!(trailer instanceof Buffer)) return problem.code === grpc.status.UNIMPLEMENTED;
    const type = this.to.proto["acp.v1.ErrorBody"] as loader.MessageTypeDefinition<object, object>;
    const body = type.deserialize(trailer) as { error?: { retryable?: boolean } };
    return body.error?.retryable !== true;
  }
}

function name({ call_id, attempt }: Key): string {
  return `${call_id} ${attempt}`;
}
