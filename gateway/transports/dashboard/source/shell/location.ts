// Where the reader is, and how they get elsewhere; `places.ts` says what an address means.
import { useEffect, useState } from "preact/hooks";
import { placeOf, type Place } from "./places";

export { href, placeOf, type Place } from "./places";

/** The present place; changes with the hash. */
export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const read = (): void => setHash(location.hash);
    window.addEventListener("hashchange", read);
    return () => window.removeEventListener("hashchange", read);
  }, []);
  return placeOf(hash);
}

/** Go there; `replace` leaves no step behind for the back button. */
export function goTo(target: string, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(null, "", target);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}
