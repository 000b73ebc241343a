//! Addresses of our own pages.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::subject::Product;

/// All but what is not reserved in RFC 3986 (section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path with parameters; those without a value are left out.
pub fn to(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut link = path.to_owned();
    let mut sign = '?';
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        link.push(sign);
        link += name;
        link.push('=');
        link += &encoded(value);
        sign = '&';
    }
    link
}

pub fn device(product: &Product) -> String {
    format!("/device/{}", encoded(&product.key()))
}

pub fn result(id: &str) -> String {
    format!("/result/{id}")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
