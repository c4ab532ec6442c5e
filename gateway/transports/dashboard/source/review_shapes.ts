// What `/v1/reviews/...` answers, as the operator API's document describes it.
export interface Why {
  doubt: string;
  amount: number;
}

export interface ReviewItem {
  session_id: string;
  workflow: string;
  ended_at: string;
  slice: "UNIFORM" | "UNCLEAR";
  sampling_probability: number;
  unclear: number;
  why?: Why[];
  held_by?: string;
  held_until?: string;
  skipped?: boolean;
  opened?: number;
}

export interface ReviewQueue {
  waiting: number;
  uniform: number;
  current: string;
  items: ReviewItem[];
  next: string;
}

export interface ShownSource {
  source: number;
  pointer: string;
  step?: string;
  action?: string;
  opened?: boolean;
  found?: "VALUE" | "CUT" | "NOWHERE";
  says?: string;
  characters?: number;
}

export interface ShownClaim {
  claim: number;
  text: string;
  value?: string;
  unit?: string;
  derivation?: string;
  verdict?: "SUPPORTED" | "CONTRADICTED" | "NOT_CHECKABLE";
  reason?: string;
  sources?: ShownSource[];
}

export interface ReviewView {
  session_id: string;
  workflow: string;
  opened_at: string;
  ended_at: string;
  stand: "WAITING" | "DONE";
  slice: "UNIFORM" | "UNCLEAR";
  sampling_probability: number;
  unclear: number;
  why?: Why[];
  input?: string;
  output?: string;
  claims?: ShownClaim[];
  claims_left_out?: number;
  sentences?: { text: string; risk: number; reason: string }[];
  unopened?: number;
  held_by?: string;
  held_until?: string;
  scored?: boolean;
  score?: number;
  comment?: string;
}

export interface NextReview {
  session_id: string;
  waiting: number;
}

export interface OpenedSource {
  claim: ShownClaim;
  unopened: number;
}

export interface ScoredReview {
  feedback_id: string;
  stand: "WAITING" | "DONE";
  waiting: number;
}
