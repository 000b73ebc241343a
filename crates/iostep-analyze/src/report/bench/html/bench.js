// Starts the page of a bench.

document.getElementById("theme").hidden = false;
setUpTheme(() => {});
document.querySelectorAll("table.sortable").forEach(setUpTable);
// Paper has no folds.
addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((each) => each.setAttribute("open", ""));
});
