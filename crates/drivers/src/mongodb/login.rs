//! Logging in by SCRAM-SHA-256 (RFC 5802 and 7677): client and server each prove to the
//! other that they know the password, without sending it.
//!
//! By hand on top of `ring`: PostgreSQL's implementation leaves out the name of the user, which
//! its own protocol sends elsewhere, and `MongoDB`'s client keeps its one to itself.
//!
//! Passwords are taken as they are written; RFC 7677 would normalize those with characters
//! of compatibility, like ligatures.

use super::errors::accepted;
use super::protocol::Connection;
use crate::sql::Stage;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use isolde_harness::{Address, Failure};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

const MECHANISM: &str = "SCRAM-SHA-256";
const HASH_LENGTH: usize = digest::SHA256_OUTPUT_LEN;
/// What the standard demands at least, and what nobody needs more than.
const ITERATIONS: std::ops::RangeInclusive<u32> = 4096..=10_000_000;

/// Who logs in, and where the server knows him from.
#[derive(Clone)]
pub(super) struct Login {
    user: String,
    password: String,
    source: String,
}

impl Login {
    /// The login of an address; none if it names nobody.
    pub(super) fn of(address: &Address) -> Result<Option<Login>, Failure> {
        let source = address.option("authSource");
        match (&address.user, &address.password) {
            (Some(user), Some(password)) => {
                let path = Some(address.path.as_str()).filter(|path| !path.is_empty());
                let source = source.or(path).unwrap_or("admin").to_owned();
                Ok(Some(Login { user: user.clone(), password: password.clone(), source }))
            }
            (None, None) if source.is_none() => Ok(None),
            _ => Err(Failure::Refused(
                "expected user and password in the address, as in mongodb://user:password@host, \
                 found one without the other"
                    .to_owned(),
            )),
        }
    }

    /// Logs in to a server.
    pub(super) fn log_in(&self, connection: &mut Connection) -> Result<(), Failure> {
        let mut call = |mut command: Document, payload: String| {
            let payload = Binary { subtype: BinarySubtype::Generic, bytes: payload.into_bytes() };
            command.extend(doc! { "payload": payload, "$db": &self.source });
            let reply =
                connection.call(&command).map_err(|error| Failure::Lost(error.to_string()))?;
            accepted(reply, Stage::Statement)
        };
        let exchange = Exchange::new(&self.user, &nonce()?);
        let options = doc! { "skipEmptyExchange": true };
        let start = doc! { "saslStart": 1, "mechanism": MECHANISM, "options": options };
        let challenge = call(start, exchange.first())?;
        let conversation = challenge.get("conversationId").cloned().unwrap_or(Bson::Int32(1));
        let next = || doc! { "saslContinue": 1, "conversationId": conversation.clone() };
        let proof = exchange.proof(&self.password, &payload(&challenge)?)?;
        let mut reply = call(next(), proof.last)?;
        let expected = format!("v={}", BASE64_STANDARD.encode(proof.of_server.as_ref()));
        if payload(&reply)? != expected {
            return Err(Failure::Refused(
                "expected a server that knows the password, found one that cannot prove it"
                    .to_owned(),
            ));
        }
        // Older servers end with an empty exchange.
        if !reply.get_bool("done").unwrap_or(false) {
            reply = call(next(), String::new())?;
        }
        match reply.get_bool("done") {
            Ok(true) => Ok(()),
            _ => Err(unexpected("an exchange without end")),
        }
    }
}

/// A number that was never used before.
fn nonce() -> Result<String, Failure> {
    let mut bytes = [0; 24];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::Refused("the system has no random numbers".to_owned()))?;
    Ok(BASE64_STANDARD.encode(bytes))
}

fn payload(reply: &Document) -> Result<String, Failure> {
    match reply.get("payload") {
        Some(Bson::Binary(Binary { bytes, .. })) => {
            String::from_utf8(bytes.clone()).map_err(|_| unexpected("bytes that are no text"))
        }
        _ => Err(unexpected("no message")),
    }
}

fn unexpected(found: &str) -> Failure {
    Failure::Refused(format!("expected a message of {MECHANISM} from MongoDB, found {found}"))
}

/// What both sides say.
struct Exchange {
    nonce: String,
    /// The first message without its head.
    bare: String,
}

/// The last message of the client, and what the server has to answer.
struct Proof {
    last: String,
    of_server: hmac::Tag,
}

impl Exchange {
    fn new(user: &str, nonce: &str) -> Exchange {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Exchange { nonce: nonce.to_owned(), bare: format!("n={user},r={nonce}") }
    }

    fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    fn proof(&self, password: &str, challenge: &str) -> Result<Proof, Failure> {
        let (nonce, salt, iterations) =
            challenged(challenge).ok_or_else(|| unexpected("another challenge"))?;
        // Anybody could repeat an older one.
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(unexpected("the challenge to another message"));
        }
        let mut salted = [0; HASH_LENGTH];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, iterations, &salt, password.as_bytes(), &mut salted);
        let signed = |key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        };
        let without_proof = format!("c=biws,r={nonce}");
        let all = format!("{},{challenge},{without_proof}", self.bare);
        let client = signed(&salted, "Client Key");
        let stored = digest::digest(&digest::SHA256, client.as_ref());
        let signature = signed(stored.as_ref(), &all);
        let mixed = client.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = mixed.map(|(one, other)| one ^ other).collect();
        Ok(Proof {
            last: format!("{without_proof},p={}", BASE64_STANDARD.encode(proof)),
            of_server: signed(signed(&salted, "Server Key").as_ref(), &all),
        })
    }
}

/// Nonce, salt and iterations of a challenge.
fn challenged(text: &str) -> Option<(&str, Vec<u8>, NonZeroU32)> {
    let mut parts = text.split(',');
    let nonce = parts.next()?.strip_prefix("r=")?;
    let salt = BASE64_STANDARD.decode(parts.next()?.strip_prefix("s=")?).ok()?;
    let iterations: u32 = parts.next()?.strip_prefix("i=")?.parse().ok()?;
    let iterations = Some(iterations).filter(|count| ITERATIONS.contains(count))?;
    Some((nonce, salt, NonZeroU32::new(iterations)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    #[test]
    fn the_example_of_the_standard_comes_out() {
        let exchange = Exchange::new("user", "rOprNGfwEbeRWgbNEkqO");
        assert_eq!(exchange.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let proof = exchange.proof("pencil", CHALLENGE).expect("a challenge");
        assert_eq!(
            proof.last,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        let expected = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(BASE64_STANDARD.encode(proof.of_server.as_ref()), expected);
    }

    #[test]
    fn challenges_that_are_none_are_refused() {
        let exchange = Exchange::new("user", "rOprNGfwEbeRWgbNEkqO");
        for challenge in [
            "",
            "e=unknown-user",
            &CHALLENGE.replace("r=r", "r=R"),
            &CHALLENGE.replace("i=4096", "i=1"),
            &CHALLENGE.replace("i=4096", "i=4294967295"),
            &CHALLENGE.replace("W22", "W2?"),
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        ] {
            assert!(exchange.proof("pencil", challenge).is_err(), "{challenge}");
        }
    }

    #[test]
    fn names_are_written_as_the_standard_has_them() {
        assert_eq!(Exchange::new("a=b,c", "1").first(), "n,,n=a=3Db=2Cc,r=1");
    }
}
