//! Who sends an upload: an installation, by its key. The key says nothing about a person.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::nonce::Nonce;

/// The header with the public key, in hexadecimal digits as the others.
pub const KEY: &str = "iostep-key";
/// The header with the server's nonce.
pub const NONCE: &str = "iostep-nonce";
/// The header with the signature.
pub const SIGNATURE: &str = "iostep-signature";
/// The header with the token that takes a result back.
pub const DELETE_TOKEN: &str = "iostep-delete-token";

/// What is signed begins so, that the signature is good for nothing else.
const PURPOSE: &[u8] = b"iostep upload 1\n";

/// Bytes of a public key and of a private one.
pub const KEY_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// What is signed: the purpose, the nonce, and SHA-256 of the body as it is sent.
fn message(nonce: &Nonce, body: &[u8]) -> Vec<u8> {
    let hash: [u8; 32] = Sha256::digest(body).into();
    [PURPOSE, &nonce[..], &hash[..]].concat()
}

/// The public key of a private one.
pub fn public(private: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    SigningKey::from_bytes(private).verifying_key().to_bytes()
}

/// Signs a body for one nonce.
pub fn sign(private: &[u8; KEY_BYTES], nonce: &Nonce, body: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let key = SigningKey::from_bytes(private);
    key.sign(&message(nonce, body)).to_bytes()
}

/// True if the key's owner signed this body for this nonce.
pub fn is_of(
    key: &[u8; KEY_BYTES],
    nonce: &Nonce,
    body: &[u8],
    signature: &[u8; SIGNATURE_BYTES],
) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(key) else {
        return false;
    };
    let signature = Signature::from_bytes(signature);
    key.verify_strict(&message(nonce, body), &signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_key_one_nonce_and_one_body() {
        let (private, nonce) = ([7; 32], [1; 40]);
        let key = public(&private);
        let signature = sign(&private, &nonce, b"body");
        assert!(is_of(&key, &nonce, b"body", &signature));
        assert!(!is_of(&public(&[8; 32]), &nonce, b"body", &signature));
        assert!(!is_of(&key, &[2; 40], b"body", &signature));
        assert!(!is_of(&key, &nonce, b"Body", &signature));
        assert!(!is_of(&key, &nonce, b"body", &[0; 64]));
        // The neutral element: its "signatures" fit every message.
        let mut weak = [0; 32];
        weak[0] = 1;
        assert!(!is_of(&weak, &nonce, b"body", &[0; 64]));
    }
}
