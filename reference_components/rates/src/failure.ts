/** Errors that cross the border: protocol section 5, one table. When one is thrown nothing was done. */

import { status } from "@grpc/grpc-js";

const REASONS = {
  INVALID_REQUEST: { code: "INVALID_ARGUMENT", boundary: "CLIENT" },
  VERSION_UNSUPPORTED: { code: "FAILED_PRECONDITION", boundary: "CLIENT" },
  UNKNOWN_CURRENCY: { code: "NOT_FOUND", boundary: "CLIENT" },
  NOT_FOUND: { code: "NOT_FOUND", boundary: "CLIENT" },
  PAYLOAD_TOO_LARGE: { code: "RESOURCE_EXHAUSTED", boundary: "CLIENT" },
  INTERNAL: { code: "INTERNAL", boundary: "COMPONENT" },
} as const;

export type Reason = keyof typeof REASONS;

const MAX_MESSAGE = 1000; // characters; keeps the trailer far below its 4 KiB

export class Failure extends Error {
  constructor(
    readonly reason: Reason,
    message: string,
  ) {
    super(message.slice(0, MAX_MESSAGE));
  }

  get grpcStatus(): status {
    return status[REASONS[this.reason].code];
  }

  /** The message `acp.v1.ErrorBody`, as proto-loader takes it. */
  get body(): object {
    const { code, boundary } = REASONS[this.reason];
    return {
      error: {
        code: `CODE_${code}`,
        reason: this.reason,
        message: this.message,
        retryable: false,
        side_effect: "SIDE_EFFECT_NONE",
        boundary: `BOUNDARY_${boundary}`,
      },
    };
  }
}

export function invalid(message: string): Failure {
  return new Failure("INVALID_REQUEST", message);
}
