// Where the dashboard begins: the style, the theme, the frame around whichever page the hash names.
import { render } from "preact";
import "./styles/index.css";
import { Frame } from "./shell/frame";
import { applyTheme } from "./shell/theme";

applyTheme();
const root = document.getElementById("app");
if (root) render(<Frame />, root);
