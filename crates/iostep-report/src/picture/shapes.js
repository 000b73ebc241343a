// The outlines of marks. `r` is the radius of a circle of the same area, so that bytes compare
// across shapes.

/** @type {Record<ShapeName, (path: Path2D, x: number, y: number, r: number) => void>} */
const SHAPES = {
    circle(path, x, y, r) {
        path.moveTo(x + r, y);
        path.arc(x, y, r, 0, 2 * Math.PI);
    },
    square(path, x, y, r) {
        const half = r * 0.886;
        path.rect(x - half, y - half, 2 * half, 2 * half);
    },
    diamond(path, x, y, r) {
        const half = r * 1.253;
        polygon(path, [x, y - half, x + half, y, x, y + half, x - half, y]);
    },
    triangle(path, x, y, r) {
        const side = r * 1.35;
        const [half, low] = [side * 0.866, y + side / 2];
        polygon(path, [x, y - side, x + half, low, x - half, low]);
    },
    plus(path, x, y, r) {
        polygon(path, starOf(x, y, r * 1.19, r * 0.4, 0));
    },
    cross(path, x, y, r) {
        polygon(path, starOf(x, y, r * 1.19, r * 0.4, Math.PI / 4));
    },
};

// The twelve corners of a plus sign: four arms, turned by `angle`.
/** @type {(x: number, y: number, long: number, thin: number, angle: number) => number[]} */
function starOf(x, y, long, thin, angle) {
    const points = /** @type {number[]} */ ([]);
    for (let arm = 0; arm < 4; arm++) {
        const cos = Math.cos(angle + (arm * Math.PI) / 2);
        const sin = Math.sin(angle + (arm * Math.PI) / 2);
        const corner = (/** @type {number} */ a, /** @type {number} */ b) =>
            points.push(x + a * cos - b * sin, y + a * sin + b * cos);
        corner(long, -thin);
        corner(long, thin);
        corner(thin, thin);
    }
    return points;
}

/** @type {(path: Path2D, points: number[]) => void} */
function polygon(path, points) {
    path.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) path.lineTo(points[i], points[i + 1]);
    path.closePath();
}

export { SHAPES };
