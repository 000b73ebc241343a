// The elements of the page's template.

/**
 * The first element that a selector finds, which is of this kind.
 * @type {<E extends Element>(root: ParentNode, selector: string, kind: new () => E) => E}
 */
function find(root, selector, kind) {
    const found = root.querySelector(selector);
    if (found instanceof kind) return found;
    throw new Error(`the page has no ${selector}`);
}

export { find };
