//! A plot with its grid, its lines and what shows where the pointer rests.

use askama::Template;

use super::axis::{Axis, Px, Tick};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
/// The frame: left, right, top and bottom.
pub(in crate::report) const ACROSS_PX: (f64, f64) = (78.0, WIDTH - 14.0);
/// Pixels count from the top.
pub(in crate::report) const UP_PX: (f64, f64) = (HEIGHT - 42.0, 20.0);

/// A line with its name in the legend.
pub(in crate::report) struct Line {
    pub name: String,
    /// The `d` of a path.
    pub path: String,
}

/// A dot of a line.
pub(in crate::report) struct Dot {
    /// The line's place in the legend.
    pub line: usize,
    pub x: Px,
    pub y: Px,
    pub title: String,
}

/// A piece of the plot that says something where the pointer rests on it.
pub(in crate::report) struct Zone {
    pub x: Px,
    pub width: Px,
    pub title: String,
}

/// A vertical line where something begins.
pub(in crate::report) struct Edge {
    pub x: Px,
    pub name: String,
}

/// A plot.
#[derive(Template)]
#[template(path = "plot.html")]
pub(in crate::report) struct Plot {
    pub title: String,
    /// What it shows, in a sentence.
    pub note: &'static str,
    pub across: Vec<Tick>,
    pub across_name: &'static str,
    pub up: Vec<Tick>,
    pub lines: Vec<Line>,
    pub dots: Vec<Dot>,
    pub zones: Vec<Zone>,
    pub edges: Vec<Edge>,
}

impl Plot {
    /// The frame: left, right, top and bottom.
    fn frame(&self) -> [f64; 4] {
        [ACROSS_PX.0, ACROSS_PX.1, UP_PX.1, UP_PX.0]
    }
}

/// The path of values that hold from one place to the next: a gap where there is none.
pub(in crate::report) fn stairs(
    steps: impl Iterator<Item = (f64, f64, Option<f64>)>,
    across: &Axis,
    up: &Axis,
) -> String {
    let mut path = String::new();
    let mut is_down = false;
    for (from, to, value) in steps {
        let Some(value) = value else {
            is_down = false;
            continue;
        };
        let y = up.at(value);
        path += &match is_down {
            true => format!("V{y:.1}"),
            false => format!("M{:.1} {y:.1}", across.at(from)),
        };
        path += &format!("H{:.1}", across.at(to));
        is_down = true;
    }
    path
}
