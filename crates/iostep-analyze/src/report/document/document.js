// Starts the page of a document.

import { setUpTables } from "../html/sort.js";
import { setUpTheme } from "../html/theme.js";

setUpTheme(() => {});
setUpTables();
// Paper has no folds.
addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((each) => each.setAttribute("open", ""));
});
