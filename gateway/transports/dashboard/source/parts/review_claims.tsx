// The claims of a session under review, each with its sources; a source shows what it says once it
// was opened, and the guard's reason stands under a claim whose sources are all open.
import { useEffect, useRef } from "preact/hooks";
import { count, readable, visible, words } from "../figures";
import type { ReviewView, ShownClaim, ShownSource } from "../review_shapes";
import { VERDICTS } from "./status";

export interface ClaimPlace {
  claim: number;
  /** It was gone to by a key: the focus goes along. */
  isMoved: boolean;
}

interface ClaimsProps {
  view: ReviewView;
  at: ClaimPlace;
  pick: (claim: number) => void;
  open: (claim: number, source: number) => void;
}

export function Claims({ view, at, pick, open }: ClaimsProps) {
  const claims = view.claims ?? [];
  return (
    <section class="panel flush" aria-label="Claims">
      <div class="panel-head">
        <h2>Claims</h2>
        <span class="small muted">{progress(view)}</span>
      </div>
      {claims.length === 0 && (
        <p class="muted">This session made no claim. Judge what it answered by what it was asked.</p>
      )}
      <ol class="claims">
        {claims.map((one) => (
          <Claim
            key={one.claim}
            claim={one}
            isPresent={one.claim === at.claim}
            takesFocus={one.claim === at.claim && at.isMoved}
            pick={() => pick(one.claim)}
            open={(source) => open(one.claim, source)}
          />
        ))}
      </ol>
      {(view.claims_left_out ?? 0) > 0 && (
        <p class="muted">{count(view.claims_left_out)} more claims are not looked at.</p>
      )}
    </section>
  );
}

interface ClaimProps {
  claim: ShownClaim;
  isPresent: boolean;
  takesFocus: boolean;
  pick: () => void;
  open: (source: number) => void;
}

function Claim({ claim, isPresent, takesFocus, pick, open }: ClaimProps) {
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (takesFocus) item.current?.focus();
  }, [takesFocus]);
  const sources = claim.sources ?? [];
  const opened = (source: number): void => {
    item.current?.focus(); // the button that was pressed goes away
    open(source);
  };
  return (
    <li
      ref={item}
      class="claim"
      tabIndex={isPresent ? 0 : -1}
      aria-current={isPresent ? "true" : undefined}
      aria-label={`Claim ${claim.claim + 1}`}
      onClick={pick}
    >
      <p class="claim-head">
        <span class="claim-text isolated">{visible(claim.text)}</span>
        <Verdict claim={claim} />
      </p>
      <Stated claim={claim} />
      {sources.length === 0 && <p class="warn small">It names no source.</p>}
      <ul class="sources">
        {sources.map((one) => (
          <Source key={one.source} source={one} open={() => opened(one.source)} />
        ))}
      </ul>
      {claim.reason && <p class="small muted isolated">The guard: {visible(claim.reason)}</p>}
    </li>
  );
}

function Stated({ claim }: { claim: ShownClaim }) {
  const parts = [
    claim.value && `value ${claim.value}${claim.unit ? ` ${claim.unit}` : ""}`,
    !claim.value && claim.unit && `unit ${claim.unit}`,
    claim.derivation && `from ${claim.derivation}`,
  ].filter(Boolean);
  return parts.length === 0 ? null : <p class="small mono isolated">{readable(parts.join(", "))}</p>;
}

function Source({ source, open }: { source: ShownSource; open: () => void }) {
  const name = source.pointer.split("/").pop() ?? source.pointer;
  return (
    <li class="source">
      <span class="source-name">
        <span class="isolated">{visible(name)}</span>
        <span class="small muted isolated" title={source.pointer}>
          {visible(source.action || source.pointer)}
        </span>
      </span>
      {source.opened ? (
        <Says source={source} />
      ) : (
        <button type="button" onClick={open} aria-label={`Open ${name}`}>
          Open
        </button>
      )}
    </li>
  );
}

function Says({ source }: { source: ShownSource }) {
  if (source.found === "NOWHERE") return <span class="mark bad">leads nowhere</span>;
  return (
    <span>
      <code class="says isolated">{readable(source.says ?? "")}</code>
      {source.found === "CUT" && (
        <span class="small muted"> the beginning of {count(source.characters)} characters</span>
      )}
    </span>
  );
}

function Verdict({ claim }: { claim: ShownClaim }) {
  const { verdict = "" } = claim;
  const tone = VERDICTS[verdict];
  if (!tone) return null;
  return <span class={`mark small ${tone}`}>{words(verdict)}</span>;
}

function progress(view: ReviewView): string {
  const all = (view.claims ?? []).reduce((sum, one) => sum + (one.sources?.length ?? 0), 0);
  if (all === 0) return "no source to open";
  return `${all - (view.unopened ?? 0)} of ${all} sources open`;
}
