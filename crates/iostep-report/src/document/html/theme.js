// Light, dark, or as the system has it.

import { find } from "../../picture/dom.js";

const THEMES = ["auto", "light", "dark"];

function setUpTheme(/** @type {() => void} */ onChange) {
    const button = find(document, "#theme", HTMLButtonElement);
    const show = (/** @type {string} */ theme) => {
        document.documentElement.dataset.theme = theme;
        button.textContent = `theme: ${theme}`;
        onChange();
    };
    button.hidden = false;
    const wanted = new URLSearchParams(location.search).get("theme") ?? "";
    let at = Math.max(THEMES.indexOf(wanted), 0);
    show(THEMES[at]);
    button.addEventListener("click", () => {
        at = (at + 1) % THEMES.length;
        show(THEMES[at]);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onChange);
    // Ink on paper, whatever the screen shows, and no folds.
    addEventListener("beforeprint", () => {
        show("light");
        document.querySelectorAll("details").forEach((each) => each.setAttribute("open", ""));
    });
    addEventListener("afterprint", () => show(THEMES[at]));
}

export { setUpTheme };
