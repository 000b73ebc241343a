//! The modules of a crate, the paths in them, and where these lead.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Crate, Module, Path};

/// Reads a crate from its root file on; `texts` are the files by their paths.
///
/// Errors: a module that is declared and not there, a file that is no Rust.
pub fn read(directory: &str, root: &str, texts: &BTreeMap<&str, &str>) -> Result<Crate> {
    let mut reader = Reader {
        modules: Crate::new(),
        at: Path::new(),
        ahead: vec![(Path::new(), true)],
    };
    while let Some((at, is_open)) = reader.ahead.pop() {
        let file = match at.is_empty() {
            true => root.to_owned(),
            false => format!("{directory}/{}.rs", at.join("/")),
        };
        let text = texts.get(file.as_str());
        let text = text.with_context(|| format!("{file}: a module without a file"))?;
        let parsed = syn::parse_file(text).with_context(|| file.clone())?;
        let home = at.clone();
        let module = Module {
            file,
            home,
            is_open,
            ..Module::default()
        };
        reader.modules.insert(at.clone(), module);
        reader.at = at;
        reader.visit_file(&parsed);
    }
    Ok(reader.modules)
}

/// The module that a path in `at` leads to, and the names that are left of it. `None` outside the
/// crate.
pub fn resolve(modules: &Crate, at: &[String], path: &[String]) -> Option<(Path, Path)> {
    // `use a::a` would go on for ever.
    const MOST_IMPORTS: usize = 4;
    let mut path = path.to_vec();
    for _ in 0..MOST_IMPORTS {
        let child = || modules.contains_key(&[at, &path[..1]].concat());
        let (start, skipped) = match path.first()?.as_str() {
            "crate" => (Path::new(), 1),
            "self" => (at.to_vec(), 1),
            "super" => {
                let levels = path.iter().take_while(|name| *name == "super").count();
                (at[..at.len().checked_sub(levels)?].to_vec(), levels)
            }
            _ if child() => (at.to_vec(), 0),
            name => {
                let import = modules.get(at)?.imports.get(name)?;
                path.splice(..1, import.iter().cloned());
                continue;
            }
        };
        let mut module = start;
        let mut rest = &path[skipped..];
        while let Some((name, after)) = rest.split_first() {
            module.push(name.clone());
            if !modules.contains_key(&module) {
                module.pop();
                break;
            }
            rest = after;
        }
        return Some((module, rest.to_vec()));
    }
    None
}

struct Reader {
    modules: Crate,
    at: Path,
    /// Modules in files of their own, still to be read, and whether they are open.
    ahead: Vec<(Path, bool)>,
}

impl Reader {
    fn module(&mut self) -> &mut Module {
        self.modules.entry(self.at.clone()).or_default()
    }

    fn tell(&mut self, path: Path, line: usize) {
        if path.len() > 1 {
            self.module().uses.push((path, line));
        }
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            syn::UseTree::Path(path) => return self.import(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(tree, before));
            }
            syn::UseTree::Name(name) if name.ident == "self" => (before.last(), before.to_vec()),
            syn::UseTree::Name(name) => (None, with(&name.ident)),
            syn::UseTree::Rename(name) if name.ident == "self" => (None, before.to_vec()),
            syn::UseTree::Rename(name) => (None, with(&name.ident)),
            syn::UseTree::Glob(_) => (None, before.to_vec()),
        };
        let name = match tree {
            syn::UseTree::Rename(rename) => Some(rename.rename.to_string()),
            syn::UseTree::Glob(_) => None,
            _ => name.or(path.last()).cloned(),
        };
        let line = tree.span().start().line;
        if let Some(name) = name {
            self.module().imports.insert(name, path.clone());
        }
        self.tell(path, line);
    }

    /// What a macro is given has no grammar, but paths look the same in it.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Ident(name) if colons == 2 => {
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.tell(std::mem::take(&mut path), line);
                    colons = 0;
                    match other {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                    line = token.span().start().line;
                }
            }
        }
        self.tell(path, line);
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let is_open = matches!(item.vis, syn::Visibility::Public(_));
        let (file, home) = (self.module().file.clone(), self.module().home.clone());
        self.at.push(item.ident.to_string());
        if item.content.is_some() {
            let module = Module {
                file,
                home,
                is_open,
                ..Module::default()
            };
            self.modules.insert(self.at.clone(), module);
            visit::visit_item_mod(self, item);
        } else {
            self.ahead.push((self.at.clone(), is_open));
        }
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.import(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.tell(names.collect(), path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.tokens(called.tokens.clone());
    }

    /// `pub(super)` uses nothing.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let is_test = |path: syn::Path| path.is_ident("test");
    attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(is_test)
}
