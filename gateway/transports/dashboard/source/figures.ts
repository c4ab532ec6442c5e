// Figures as a reader wants them: short, with their unit, and a dash where there is none. Pure.
export const ABSENT = "–";

/** 0.9712 as `97.1 %`; whole where nothing is lost, never rounded up to 100 %. */
export function percent(share: number | undefined): string {
  if (share === undefined) return ABSENT;
  const value = share * 100;
  if (value === 0 || value === 100) return `${value} %`;
  const text = value > 99.9 ? Math.floor(value * 100) / 100 : Number(value.toPrecision(3));
  return `${text === 0 ? "<0.1" : text} %`;
}

/** Milliseconds as `840 ms`, `3.2 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return ABSENT;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const s = Math.round(ms / 1_000);
  if (s < 60) return `${s} s`;
  if (s < 3_600) return pair(Math.floor(s / 60), "min", s % 60, "s");
  const min = Math.round(s / 60);
  if (min < 1_440) return pair(Math.floor(min / 60), "h", min % 60, "min");
  const h = Math.round(min / 60);
  return pair(Math.floor(h / 24), "d", h % 24, "h");
}

function pair(more: number, unit: string, less: number, lesser: string): string {
  return less ? `${more} ${unit} ${less} ${lesser}` : `${more} ${unit}`;
}

const WHOLE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const DECIMAL = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 4 });

export function count(value: number | undefined): string {
  return value === undefined ? ABSENT : WHOLE.format(value);
}

export function decimal(value: number | undefined): string {
  return value === undefined ? ABSENT : DECIMAL.format(value);
}

export function bytes(value: number): string {
  if (value < 1_024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let scaled = value;
  let unit = "B";
  for (const next of units) {
    if (scaled < 1_024) break;
    scaled /= 1_024;
    unit = next;
  }
  return `${Number(scaled.toPrecision(3))} ${unit}`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const EXACT = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DAY = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short" });

/** The time of day; with the day where it is another than today's. */
export function moment(atMs: number | undefined, nowMs: number = Date.now()): string {
  if (atMs === undefined) return ABSENT;
  const at = new Date(atMs);
  const isToday = at.toDateString() === new Date(nowMs).toDateString();
  return isToday ? EXACT.format(at) : `${DAY.format(at)} ${EXACT.format(at)}`;
}

/** For an axis: hours within two days, days beyond. */
export function tick(atMs: number, spanMs: number): string {
  return spanMs <= 2 * 86_400_000 ? CLOCK.format(atMs) : DAY.format(atMs);
}

/** Exactly, with the zone, for a title. */
export function exactly(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** An enum's name as words: NOT_CHECKABLE as `not checkable`. */
export function words(name: string): string {
  return name.toLowerCase().replaceAll("_", " ");
}

// Controls but tab and line ends, format characters (overrides, marks, tags), halves of pairs.
const HIDDEN = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Text with what nobody could see made visible: control characters and overrides of direction. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (one) => {
    const code = one.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** JSON text as a reader wants it: escaped letters as letters; what is hidden stays visible. */
export function readable(json: string): string {
  const plain = json.replace(/\\(\\|u([0-9a-fA-F]{4}))/g, (whole, _, code: string | undefined) => {
    const unit = code === undefined ? 0 : parseInt(code, 16);
    return unit >= 0xa0 ? String.fromCharCode(unit) : whole;
  });
  return visible(plain);
}
