// A payload, folded, as text and nothing else: React-like children are text nodes, so whatever is
// written in it is seen and never runs. What nobody could see is made visible.
import { useState } from "preact/hooks";
import { bytes, visible } from "../figures";
import type { ShownPayload } from "../session_shapes";

interface PayloadProps {
  name: string;
  payload: ShownPayload | undefined;
}

export function Payload({ name, payload }: PayloadProps) {
  const [wasOpened, setOpened] = useState(false);
  if (!payload) return null;
  return (
    <details class="payload" onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary class="small">
        {name}, {bytes(payload.bytes)}
        {payload.is_cut && ", its beginning"}
      </summary>
      {wasOpened && (
        <pre tabIndex={0} dir="ltr" role="group" aria-label={name}>
          {textOf(payload)}
        </pre>
      )}
      {wasOpened && payload.is_cut && (
        <p class="small muted">
          Only the beginning is shown. All of it: <code>GET /v1/sessions/ID/trajectory</code>.
        </p>
      )}
    </details>
  );
}

function textOf(payload: ShownPayload): string {
  const text = payload.is_cut ? (payload.text ?? "") : JSON.stringify(payload.json, null, 2);
  return visible(text ?? "");
}

/** Text of a stranger in a line: visible, and in a direction of its own. */
export function Said({ text }: { text: string }) {
  return <bdi class="isolated">{visible(text)}</bdi>;
}
