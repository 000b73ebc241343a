// Starts the page: theme, sortable tables, the picture.

import { readData } from "./picture/columns.js";
import { Control } from "./picture/control.js";
import { find } from "./picture/dom.js";
import { setUpTables } from "./sort.js";
import { setUpTheme } from "./theme.js";

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
