// Light, dark, or what the system prefers; the choice is kept in this browser.
export type Theme = "auto" | "light" | "dark";
export const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const KEY = "acp.theme";

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((one) => one === kept) ?? "auto";
}

export function setTheme(chosen: Theme): void {
  localStorage.setItem(KEY, chosen);
  applyTheme();
  window.dispatchEvent(new Event(THEME_EVENT));
}

const THEME_EVENT = "acp-theme";

/** Say it on the document, where the style sheet reads it. */
export function applyTheme(): void {
  const chosen = theme();
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

/** Called when the colours change, by choice or by the system; gives what ends it. */
export function onTheme(listener: () => void): () => void {
  const preference = window.matchMedia("(prefers-color-scheme: dark)");
  window.addEventListener(THEME_EVENT, listener);
  preference.addEventListener("change", listener);
  return () => {
    window.removeEventListener(THEME_EVENT, listener);
    preference.removeEventListener("change", listener);
  };
}
