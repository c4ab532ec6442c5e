// Asks for a bearer token: shown in place of a page when the gateway answered 401.
import { useState } from "preact/hooks";
import { signIn, token } from "./token";

export function SignIn() {
  const [value, setValue] = useState("");
  const wasRefused = token() !== "";
  return (
    <form
      class="sign-in panel"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim()) signIn(value);
      }}
    >
      <h2>Sign in</h2>
      {wasRefused ? (
        <p role="alert" class="bad">
          The gateway did not take that token: it is unknown, expired or revoked.
        </p>
      ) : (
        <p>This gateway asks for a token.</p>
      )}
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
      <p class="muted">
        With the scope <code>operate</code>: <code>acp tokens create --scope operate</code>. It is
        kept in this tab only and forgotten when the tab is closed.
      </p>
      <button type="submit">Sign in</button>
    </form>
  );
}
