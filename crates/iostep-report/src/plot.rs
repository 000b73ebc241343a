//! Plots: what is drawn on a page, and what of it with characters.

pub mod axis;
pub mod drawing;
pub mod strip;

use askama::Template;

use axis::{Axis, Px, Tick};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
/// The frame: left and right.
pub const ACROSS_PX: (f64, f64) = (78.0, WIDTH - 14.0);
/// The frame: bottom and top. Pixels count from the top.
pub const UP_PX: (f64, f64) = (HEIGHT - 42.0, 20.0);
/// More groups than this have their names aslant.
const LEVEL_GROUPS: usize = 5;
/// What names that are aslant take.
const LEANING_PX: f64 = 48.0;

/// What is drawn inside the frame. A series is a colour.
pub enum Shape {
    Line {
        series: usize,
        /// The `d` of a path.
        path: String,
    },
    /// A place on a line.
    Dot {
        series: usize,
        x: Px,
        y: Px,
        title: String,
    },
    /// A piece of the plot that says something where the pointer rests on it.
    Zone { x: Px, width: Px, title: String },
    /// A vertical line where something begins.
    Edge { x: Px, name: String },
    /// A mark with its size in words.
    Mark {
        series: usize,
        x: Px,
        y: Px,
        size: String,
        forced: bool,
        title: String,
    },
    Bar {
        series: usize,
        x: Px,
        y: Px,
        width: Px,
        /// From the least to the greatest.
        range: Option<(Px, Px)>,
        /// Another's number.
        mark: Option<Px>,
        title: String,
    },
}

/// A plot.
#[derive(Default, Template)]
#[template(path = "plot.html")]
pub struct Plot {
    pub title: String,
    /// What it shows, in a sentence.
    pub note: String,
    /// Series with their names, where there are several.
    pub legend: Vec<(usize, String)>,
    pub across: Vec<Tick>,
    pub across_name: &'static str,
    /// What stands across where that is no axis.
    pub groups: Vec<Tick>,
    pub up: Vec<Tick>,
    /// From the lowest to what is drawn over it.
    pub shapes: Vec<Shape>,
}

impl Plot {
    /// With lines and their names, if there are several.
    pub fn with<const N: usize>(mut self, up: Vec<Tick>, lines: [(&str, String); N]) -> Plot {
        if N > 1 {
            let names = lines.iter().map(|(name, _)| (*name).to_owned());
            self.legend = names.enumerate().collect();
        }
        let lines = lines.into_iter().enumerate();
        let lines = lines.map(|(series, (_, path))| Shape::Line { series, path });
        // What the pointer rests on lies above them.
        let shapes = lines.chain(self.shapes).collect();
        Plot { up, shapes, ..self }
    }

    fn left(&self) -> f64 {
        ACROSS_PX.0
    }

    fn right(&self) -> f64 {
        ACROSS_PX.1
    }

    fn top(&self) -> f64 {
        UP_PX.1
    }

    fn bottom(&self) -> f64 {
        UP_PX.0
    }

    fn height(&self) -> f64 {
        HEIGHT + if self.leans() { LEANING_PX } else { 0.0 }
    }

    fn leans(&self) -> bool {
        self.groups.len() > LEVEL_GROUPS
    }

    /// From a place to the bottom.
    fn below(&self, y: &Px) -> Px {
        Px(UP_PX.0 - y.0)
    }

    fn middle(&self, x: &Px, width: &Px) -> Px {
        Px(x.0 + width.0 / 2.0)
    }
}

/// The path through these places.
pub fn polyline(places: impl IntoIterator<Item = (Px, Px)>) -> String {
    let mut path = String::new();
    for (x, y) in places {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        path += &format!("{letter}{x} {y}");
    }
    path
}

/// The path of values that hold from one place to the next: a gap where there is none.
pub fn stairs(
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
            true => format!("V{y}"),
            false => format!("M{} {y}", across.at(from)),
        };
        path += &format!("H{}", across.at(to));
        is_down = true;
    }
    path
}
