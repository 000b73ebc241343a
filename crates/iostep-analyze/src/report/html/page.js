// Starts the page: theme, sortable tables, the picture.

const THEMES = ["auto", "light", "dark"];

function setUpTheme(onChange) {
    const button = document.getElementById("theme");
    const show = (theme) => {
        document.documentElement.dataset.theme = theme;
        button.textContent = `theme: ${theme}`;
        onChange();
    };
    const wanted = new URLSearchParams(location.search).get("theme");
    let at = Math.max(THEMES.indexOf(wanted), 0);
    show(THEMES[at]);
    button.addEventListener("click", () => {
        at = (at + 1) % THEMES.length;
        show(THEMES[at]);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onChange);
    // Ink on paper, whatever the screen shows.
    addEventListener("beforeprint", () => show("light"));
    addEventListener("afterprint", () => show(THEMES[at]));
}

// Sorts a table by a column; the row that sums up the rest stays last.
function sortTable(table, column, descending) {
    const body = table.tBodies[0];
    const rows = [...body.rows].filter((row) => !row.classList.contains("rest"));
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const numbers = Number(x) - Number(y);
        return Number.isNaN(numbers) ? x.localeCompare(y) : numbers;
    };
    rows.sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
    body.prepend(...rows);
}

function setUpTable(table) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
        const button = document.createElement("button");
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
            const first = head.classList.contains("number") ? "descending" : "ascending";
            const other = first === "ascending" ? "descending" : "ascending";
            const order = head.getAttribute("aria-sort") === first ? other : first;
            heads.forEach((each) => each.removeAttribute("aria-sort"));
            head.setAttribute("aria-sort", order);
            sortTable(table, column, order === "descending");
        });
    });
}

let control = null;
setUpTheme(() => control?.recolor());
document.querySelectorAll("table.sortable").forEach(setUpTable);
const picture = document.getElementById("picture");
try {
    control = new Control(picture, await readData());
    picture.dataset.state = "ready";
} catch (error) {
    picture.dataset.state = "failed";
    picture.querySelector('[data-part="status"]').textContent =
        `the picture cannot be drawn: ${error.message}; it needs a browser of 2023 or newer`;
    throw error;
}
