//! The server's side of logging in, after RFC 5802.

use super::Reply;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

const USER: &str = "eve=2Cl";
const PASSWORD: &[u8] = b"pencil";
const SALT: &[u8] = b"sixteen bytes or";
const ITERATIONS: u32 = 4096;
const FAILED: (i32, &str) = (18, "AuthenticationFailed");

/// What one connection has said so far.
#[derive(Default)]
pub(super) struct Guard {
    is_in: bool,
    is_impostor: bool,
    /// The first message without its head, and the challenge.
    said: String,
    nonce: String,
}

impl Guard {
    /// The reply to whatever concerns logging in; none if the command may pass.
    pub(super) fn reply(&mut self, command: &Document) -> Option<Reply> {
        let payload = match command.get("payload") {
            Some(Bson::Binary(Binary { bytes, .. })) => {
                String::from_utf8(bytes.clone()).unwrap_or_default()
            }
            _ => String::new(),
        };
        match command.keys().next().expect("a command has a name").as_str() {
            "hello" => None,
            "saslStart" => {
                let is_known = command.get_str("mechanism").is_ok_and(|it| it == "SCRAM-SHA-256")
                    && command.get_str("$db").is_ok_and(|it| it == "admin");
                let challenge = self.challenge(&payload).filter(|_| is_known);
                Some(challenge.map(|text| message(&text, false)).ok_or(FAILED))
            }
            "saslContinue" => {
                let signature = self.judge(&payload);
                self.is_in = signature.is_some();
                Some(signature.map(|text| message(&text, true)).ok_or(FAILED))
            }
            _ if self.is_in => None,
            _ => Some(Err((13, "Unauthorized"))),
        }
    }

    fn challenge(&mut self, first: &str) -> Option<String> {
        let bare = first.strip_prefix("n,,n=")?;
        let (user, nonce) = bare.split_once(",r=")?;
        self.is_impostor = user == "impostor";
        if user != USER && !self.is_impostor {
            return None;
        }
        self.nonce = format!("{nonce}more");
        let challenge =
            format!("r={},s={},i={ITERATIONS}", self.nonce, BASE64_STANDARD.encode(SALT));
        self.said = format!("n={bare},{challenge}");
        Some(challenge)
    }

    /// The signature of the server, if the proof of the client is right.
    fn judge(&self, last: &str) -> Option<String> {
        let (without_proof, proof) = last.split_once(",p=")?;
        if without_proof != format!("c=biws,r={}", self.nonce) {
            return None;
        }
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        let iterations = NonZeroU32::new(ITERATIONS)?;
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, SALT, PASSWORD, &mut salted);
        let signed = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
        };
        let hashed = |bytes: &[u8]| digest::digest(&digest::SHA256, bytes).as_ref().to_vec();
        let all = format!("{},{without_proof}", self.said);
        // The server keeps only the hash of the client's key.
        let stored = hashed(&signed(&salted, b"Client Key"));
        let signature = signed(&stored, all.as_bytes());
        let key: Vec<u8> = BASE64_STANDARD
            .decode(proof)
            .ok()?
            .iter()
            .zip(&signature)
            .map(|(one, other)| one ^ other)
            .collect();
        if hashed(&key) != stored && !self.is_impostor {
            return None;
        }
        let key = if self.is_impostor { vec![7] } else { signed(&salted, b"Server Key") };
        Some(format!("v={}", BASE64_STANDARD.encode(signed(&key, all.as_bytes()))))
    }
}

fn message(payload: &str, is_done: bool) -> Document {
    let payload = Binary { subtype: BinarySubtype::Generic, bytes: payload.as_bytes().to_vec() };
    doc! { "conversationId": 3, "done": is_done, "payload": payload }
}
