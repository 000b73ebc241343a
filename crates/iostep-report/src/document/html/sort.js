// Tables that a click on a head sorts, and that name their columns in each row of a narrow page.

// Sorts a table by a column; the row that sums up the rest stays last.
/** @type {(table: HTMLTableElement, column: number, descending: boolean) => void} */
function sortTable(table, column, descending) {
    const body = table.tBodies[0];
    const rows = [...body.rows].filter((row) => !row.classList.contains("rest"));
    const key = (/** @type {HTMLTableRowElement} */ row) =>
        row.cells[column].dataset.value ?? row.cells[column].textContent ?? "";
    /** @type {(a: HTMLTableRowElement, b: HTMLTableRowElement) => number} */
    const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const numbers = Number(x) - Number(y);
        return Number.isNaN(numbers) ? x.localeCompare(y) : numbers;
    };
    rows.sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
    body.prepend(...rows);
}

// The heads of the columns: the last row of the table's head.
function headsOf(/** @type {HTMLTableElement} */ table) {
    return [...([...(table.tHead?.rows ?? [])].at(-1)?.cells ?? [])];
}

function setUpTable(/** @type {HTMLTableElement} */ table) {
    const heads = headsOf(table);
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

// Gives every cell the name of its column, for a page that is too narrow for columns.
function nameCells(/** @type {HTMLTableElement} */ table) {
    const heads = headsOf(table);
    for (const row of table.tBodies[0].rows) {
        if (row.cells.length !== heads.length) continue;
        heads.forEach((head, column) => (row.cells[column].dataset.label = head.textContent ?? ""));
    }
    table.classList.add("named");
}

function setUpTables() {
    document.querySelectorAll("table").forEach((table) => {
        nameCells(table);
        if (table.classList.contains("sortable")) setUpTable(table);
    });
}

export { setUpTables };
