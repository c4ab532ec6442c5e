/** Which calls have ended here, so that a cancel that comes late is told so (CAN-003). */

const REMEMBERED_CALLS = 10_000; // the oldest is forgotten first

export class FinishedCalls {
  private readonly ids = new Set<string>();

  add(callId: string): void {
    if (callId === "") return;
    this.ids.add(callId);
    if (this.ids.size > REMEMBERED_CALLS) this.ids.delete(this.ids.values().next().value ?? "");
  }

  /** The response to a cancel (acp.v1.CancelResponse). Nothing here runs long enough to be stopped. */
  cancelled(callId: string): object {
    return this.ids.has(callId)
      ? { state: "CANCEL_STATE_FINISHED", side_effect: "SIDE_EFFECT_NONE" }
      : { state: "CANCEL_STATE_UNKNOWN_CALL" };
  }
}
