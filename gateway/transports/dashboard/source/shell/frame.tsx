// The frame around every page: where one is, where one can go, theme, sign-in. The page's heading
// takes the focus when the page changes, so that a keyboard and a screen reader follow.
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { href, usePlace } from "./location";
import { routeOf, ROUTES, type Route } from "./routes";
import { SignIn } from "./sign_in";
import { Nothing } from "./states";
import { setTheme, theme, THEMES, type Theme } from "./theme";
import { isTokenAsked, onToken, signOut, token } from "./token";

export function Frame() {
  const place = usePlace();
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0);
  useEffect(() => onToken(() => redraw()), []);
  const found = routeOf(place);
  const title = found ? found.route.title(found.names) : "No such page";
  const key = `${found?.route.pattern}:${found?.names.join("/")}`;
  const heading = useHeadingFocus(key, title);
  const Page = found?.route.page;
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => skip(event, heading.current)}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          ACP gateway
        </a>
        <Navigation present={found?.route} />
        <div class="top-end">
          <ThemeChoice />
          {token() && (
            <button type="button" class="quiet" onClick={signOut}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <main id="content">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {isTokenAsked() ? (
          <SignIn />
        ) : found && Page ? (
          <Page key={key} names={found.names} query={place.query} />
        ) : (
          <Nothing title="There is no page here">
            Choose one above, or go to the <a href="#/">overview</a>.
          </Nothing>
        )}
      </main>
    </>
  );
}

function Navigation({ present }: { present: Route | undefined }) {
  const section = present?.pattern.split("/")[0];
  return (
    <nav aria-label="Pages">
      <ul>
        {ROUTES.filter((route) => route.link).map((route) => (
          <li key={route.pattern}>
            <a
              href={href(route.pattern.split("/").filter(Boolean))}
              aria-current={route.pattern.split("/")[0] === section ? "page" : undefined}
            >
              {route.link}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function ThemeChoice() {
  const [chosen, setChosen] = useState<Theme>(theme());
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select
        value={chosen}
        onChange={(event) => {
          const next = event.currentTarget.value as Theme;
          setTheme(next);
          setChosen(next);
        }}
      >
        {THEMES.map((one) => (
          <option key={one} value={one}>
            {one === "auto" ? "Colours: auto" : one === "light" ? "Light" : "Dark"}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The heading of a page; it takes the focus when another page comes, not when the first does. */
function useHeadingFocus(key: string, title: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(key);
  useEffect(() => {
    document.title = `${title} · ACP gateway`;
    if (shown.current === key) return;
    shown.current = key;
    window.scrollTo(0, 0);
    heading.current?.focus();
  }, [key, title]);
  return heading;
}

function skip(event: Event, heading: HTMLElement | null): void {
  event.preventDefault(); // the hash is the page's address
  heading?.focus();
}
