//! Addresses of our own pages.

use crate::subject::Product;

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

/// What is not reserved in RFC 3986 (section 2.3), and `%` and two digits for each other byte.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}
