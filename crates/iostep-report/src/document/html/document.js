// Starts the page of a document.

import { setUpTables } from "./sort.js";
import { setUpTheme } from "./theme.js";

setUpTheme(() => {});
setUpTables();
