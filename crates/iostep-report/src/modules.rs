//! JavaScript's modules as the one script of a page.
//!
//! Nothing but cargo is needed to build iostep, and a page opens from a file, where browsers load no
//! modules; its policy allows the one script and no other source. So each module becomes a function
//! that returns what it exports. ESLint sees to it that imports and exports have no other form than
//! the one that is replaced here (`.eslintrc.json`).

/// A module's name, and its source.
pub type Module = (&'static str, &'static str);

/// The script that does what the last of these modules does. Each module stands behind those that it
/// imports; comments stay behind.
pub fn bundle(modules: &[Module]) -> String {
    let (page, parts) = modules.split_last().expect("a page's own module");
    let mut script = String::from("\"use strict\";\n");
    for (name, source) in parts {
        script += &format!("const {name}_js = (() => {{\n{}}})();\n", body(source));
    }
    script + &body(page.1)
}

/// The source with its imports taken from the modules' constants, and its exports returned.
fn body(source: &str) -> String {
    let is_comment = |line: &&str| {
        let text = line.trim_start();
        ["//", "/**", "* ", "*/"]
            .iter()
            .any(|start| text.starts_with(start))
    };
    let mut body = String::new();
    for line in source.lines().filter(|line| !is_comment(line)) {
        let line = match line.split_once("} from \"") {
            Some((names, path)) => format!("{names}}} = {}_js;", stem(path)),
            None => line.replacen("export {", "return {", 1),
        };
        body += &line.replacen("import {", "const {", 1);
        body.push('\n');
    }
    body
}

/// `axes` of `picture/axes.js";`.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: &str = "// Axes.\nconst a = 1;\n\nexport { a };\n";
    const PAGE: &str = "import {\n    a,\n} from \"./picture/axes.js\";\nshow(a);\n";

    #[test]
    fn imports_come_from_the_modules_that_export_them() {
        assert_eq!(
            bundle(&[("axes", AXES), ("page", PAGE)]),
            "\"use strict\";\nconst axes_js = (() => {\nconst a = 1;\n\nreturn { a };\n})();\n\
             const {\n    a,\n} = axes_js;\nshow(a);\n"
        );
    }
}
