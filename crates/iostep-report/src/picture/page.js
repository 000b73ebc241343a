// Starts the page: theme, sortable tables, the picture.

import { readData } from "./columns.js";
import { Control } from "./control.js";
import { find } from "./dom.js";
import { setUpTables } from "../document/html/sort.js";
import { setUpTheme } from "../document/html/theme.js";

/** @type {Control | null} */
let control = null;
setUpTheme(() => control?.recolor());
setUpTables();
const picture = find(document, "#picture", HTMLElement);
try {
    control = new Control(picture, await readData());
    picture.dataset.state = "ready";
} catch (error) {
    picture.dataset.state = "failed";
    find(picture, '[data-part="status"]', HTMLElement).textContent =
        `the picture cannot be drawn: ${/** @type {Error} */ (error).message}; it needs a browser of 2023 or newer`;
    throw error;
}
