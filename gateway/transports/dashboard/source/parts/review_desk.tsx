// The session that is under review, and what a reviewer does with it: each act is told to the
// gateway first, and the page shows what the gateway answered.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type {
  NextReview,
  OpenedSource,
  ReviewView,
  ScoredReview,
  ShownClaim,
  ShownSource,
} from "../review_shapes";
import { asRefusal } from "../shell/answer";
import { ask, type Refusal } from "../shell/ask";
import { goTo, href } from "../shell/location";

export interface Desk {
  view: ReviewView | null;
  refusal: Refusal | null;
  /** The next session is on its way. */
  isAsking: boolean;
  /** A score is on its way: nothing is sent twice. */
  isBusy: boolean;
  /** This source is open, or on its way to be. */
  isOpen: (claim: number, source: ShownSource) => boolean;
  /** What has just happened, for who listens instead of looking. */
  said: string;
  open: (claim: number, source: number) => void;
  score: (score: number, comment: string) => void;
  skip: () => void;
  again: () => void;
}

/** `wanted`: a session of the reader's choice; without one, where they were or the next one. */
export function useDesk(wanted: string, changed: () => void): Desk {
  const [view, setView] = useState<ReviewView | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isAsking, setAsking] = useState(true);
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const busy = useRef(false);
  const acts = useRef<Promise<void>>(Promise.resolve());
  const asked = useRef(new Set<string>());

  const take = useCallback(async (chosen: string): Promise<void> => {
    setAsking(true);
    setRefusal(null);
    try {
      const id = chosen || (await ask<NextReview>("/v1/reviews/next", { method: "POST" })).session_id;
      setView(id ? await ask<ReviewView>(path(id)) : null);
    } catch (problem) {
      setView(null);
      setRefusal(asRefusal(problem));
    } finally {
      setAsking(false);
    }
  }, []);
  useEffect(() => void take(wanted), [wanted]);

  /** One act after the other, however fast they come; a refusal is shown, and nothing is lost. */
  const act = (work: () => Promise<void>): void => {
    acts.current = acts.current.then(async () => {
      setRefusal(null);
      try {
        await work();
      } catch (problem) {
        setRefusal(asRefusal(problem));
      }
    });
  };
  /** Once, whoever presses twice. */
  const finish = (work: () => Promise<void>): void => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    act(async () => {
      try {
        await work();
      } finally {
        busy.current = false;
        setBusy(false);
      }
    });
  };
  /** To the next one: also where this one stands in the address. */
  const goOn = async (): Promise<void> => {
    changed();
    if (wanted) goTo(href(["annotate"]), { replace: true });
    else await take("");
  };
  const id = view?.session_id ?? "";
  const isOpen = (claim: number, source: ShownSource): boolean =>
    source.opened === true || asked.current.has(`${id} ${claim} ${source.source}`);
  const open = (claim: number, source: number): void => {
    const key = `${id} ${claim} ${source}`;
    asked.current.add(key);
    act(async () => {
      try {
        const told = await ask<OpenedSource>(`${path(id)}/openings`, {
          method: "POST",
          body: { claim, source },
        });
        setView((now) => (now?.session_id === id ? withClaim(now, told) : now));
        const says = told.claim.sources?.[source]?.says;
        setSaid(`${says ? `It says ${says}.` : "It leads nowhere."} ${left(told.unopened)}`);
      } finally {
        asked.current.delete(key);
      }
    });
  };
  const score = (given: number, comment: string): void => {
    finish(async () => {
      const scored = await ask<ScoredReview>(`${path(id)}/score`, {
        method: "POST",
        body: { score: given, comment },
      });
      setSaid(scored.stand === "DONE" ? "Scored." : "Scored. Somebody else has to look as well.");
      await goOn();
    });
  };
  const skip = (): void => {
    finish(async () => {
      await ask<NextReview>(`${path(id)}/skip`, { method: "POST" });
      setSaid("Skipped.");
      await goOn();
    });
  };
  return { view, refusal, isAsking, isBusy, said, isOpen, open, score, skip, again: () => void take(wanted) };
}

function path(sessionId: string): string {
  return `/v1/reviews/${encodeURIComponent(sessionId)}`;
}

function withClaim(view: ReviewView, told: OpenedSource): ReviewView {
  const claims = (view.claims ?? []).map((one): ShownClaim =>
    one.claim === told.claim.claim ? told.claim : one,
  );
  return { ...view, claims, unopened: told.unopened };
}

function left(unopened: number): string {
  if (unopened === 0) return "Every source is open: you can score.";
  return unopened === 1 ? "One source is left." : `${unopened} sources are left.`;
}
