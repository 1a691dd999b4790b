//! What proves that a process is of the run.

use std::fmt::{self, Debug};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What only processes of a run know; nothing if they believe whoever connects. Never printed.
#[derive(Clone, Default)]
pub struct Secret(Vec<u8>);

impl Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// From the bytes of a file, without blanks at its ends.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.trim_ascii().to_vec())
    }

    /// Itself, unless it is empty.
    pub fn filled(self) -> Option<Self> {
        (!self.0.is_empty()).then_some(self)
    }

    fn mac(&self, parts: [&[u8]; 3]) -> Hmac<Sha256> {
        // NB: any length is a key.
        #[expect(clippy::expect_used, reason = "it fails for no length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length");
        for part in parts {
            mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            mac.update(part);
        }
        mac
    }

    /// The proof of whoever has `role`, for what was said and what cannot have been known before.
    pub(super) fn proof(&self, role: &str, said: &[u8], nonce: &[u8; 32]) -> [u8; 32] {
        self.mac([role.as_bytes(), said, nonce]).finalize().into_bytes().into()
    }

    /// Whether that is the proof. It takes the same time for any.
    pub(super) fn is_proof(&self, proof: &[u8; 32], role: &str, said: &[u8], nonce: &[u8; 32]) -> bool {
        self.mac([role.as_bytes(), said, nonce]).verify_slice(proof).is_ok()
    }
}

/// Bytes that nobody can know before.
pub(super) fn nonce() -> [u8; 32] {
    let mut bytes = [0; 32];
    // NB: without randomness a proof could be one that was heard before, so nothing goes on without it.
    #[expect(clippy::expect_used, reason = "the system has no randomness")]
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// A number that no other meeting has.
pub(super) fn random() -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = nonce();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}
