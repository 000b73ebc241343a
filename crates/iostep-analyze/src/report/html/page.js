// Starts the page: theme, sortable tables, the picture.

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
