// The bearer token of this tab: asked for once the gateway says 401, forgotten with the tab.
// Nothing else is kept in the browser but the theme.
const KEY = "acp.token";

let asked = false;
const listeners = new Set<() => void>();

export function token(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

/** Whether a request was refused for want of a token. */
export function isTokenAsked(): boolean {
  return asked;
}

export function signIn(value: string): void {
  sessionStorage.setItem(KEY, value.trim());
  asked = false;
  tell();
}

/** Forget the token and ask for one. */
export function signOut(): void {
  sessionStorage.removeItem(KEY);
  askForToken();
}

export function askForToken(): void {
  asked = true;
  tell();
}

/** Called whenever any of this changes; gives what ends it. */
export function onToken(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  for (const listener of listeners) listener();
}
