// The outlines of marks. `r` is the radius of a circle of the same area, so that bytes compare
// across shapes.

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
        polygon(path, [
            x,
            y - side,
            x + side * 0.866,
            y + side / 2,
            x - side * 0.866,
            y + side / 2,
        ]);
    },
    plus(path, x, y, r) {
        polygon(path, starOf(x, y, r * 1.19, r * 0.4, 0));
    },
    cross(path, x, y, r) {
        polygon(path, starOf(x, y, r * 1.19, r * 0.4, Math.PI / 4));
    },
};

// The twelve corners of a plus sign: four arms, turned by `angle`.
function starOf(x, y, long, thin, angle) {
    const points = [];
    for (let arm = 0; arm < 4; arm++) {
        const cos = Math.cos(angle + (arm * Math.PI) / 2);
        const sin = Math.sin(angle + (arm * Math.PI) / 2);
        for (const [a, b] of [
            [long, -thin],
            [long, thin],
            [thin, thin],
        ]) {
            points.push(x + a * cos - b * sin, y + a * sin + b * cos);
        }
    }
    return points;
}

function polygon(path, points) {
    path.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) path.lineTo(points[i], points[i + 1]);
    path.closePath();
}
