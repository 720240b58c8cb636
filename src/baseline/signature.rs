//! Signatures of locks: minisign, over the bytes of `<variant>.lock.toml`, as
//! `minisign -Vm <variant>.lock.toml -P KEY` verifies it. The lock contains the hashes of the other
//! files.

use std::io::Cursor;
use std::path::Path;

use minisign_verify::{Error as Refusal, PublicKey, Signature};

use super::store::{SIGNATURE, Stored};
use crate::config::{Config, Trust};
use crate::files::{most, read_text_up_to};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::terms::VariantId;

/// The environment variable that the password of a key is taken from.
pub const PASSWORD_VARIABLE: &str = "SPARSEK_GATE_KEY_PASSWORD";

/// The finding that a stored lock has no valid signature, or one that cannot be verified because no
/// key is configured.
pub fn unsigned(trust: &Trust, stored: &Stored) -> Option<Finding> {
    if trust.public_keys.is_empty() {
        return stored
            .signature
            .as_deref()
            .map(|text| unverified(stored, text));
    }
    let name = stored.name("lock.toml");
    let id = &stored.variant;
    let lock = stored.lock.as_deref()?;
    let Some(signature) = &stored.signature else {
        let message = format!("{name} is not signed, and `trust.public_keys` is set");
        return Some(Finding::of(Code::Unsigned, id, message));
    };
    verified(&trust.public_keys, lock.as_bytes(), signature)
        .err()
        .map(|why| {
            let message = format!("the signature of {name} is not valid: {why}");
            Finding::deny(
                Code::Tampered,
                id,
                message,
                Code::Unsigned.next_step_of(Some(id)),
            )
        })
}

/// The finding on a signature where no key is configured.
fn unverified(stored: &Stored, signature: &str) -> Finding {
    let what = match Signature::decode(signature) {
        Ok(_) => "is not verified".to_owned(),
        Err(error) => format!("is not a signature of minisign ({error})"),
    };
    let message = format!(
        "{} {what}: the configuration names no key, so the signature proves nothing",
        stored.name(SIGNATURE)
    );
    let next = "name the keys that may sign locks in `trust.public_keys`, or remove the file";
    Finding::deny(Code::Unsigned, &stored.variant, message, next).warn_for(WarnReason::NoKeys)
}

/// The finding that checks do not accept a lock, because no key of the configuration signs it.
pub(super) fn unknown_key(config: &Config, signer: Option<&Signer>) -> Option<Finding> {
    let keys = &config.trust.public_keys;
    let (message, next) = match signer.map(Signer::public_key) {
        Some(key) if keys.contains(&key) => return None,
        None if keys.is_empty() => return None,
        Some(key) => (
            format!("the locks are signed with {key}, which `trust.public_keys` does not name"),
            "add the key to `trust.public_keys` in a separate change, for signatures to be verified",
        ),
        None => (
            "the locks are not signed, and `trust.public_keys` is set".to_owned(),
            "have the owner of a key sign them: sparsek-gate baseline --sign --sign-key FILE",
        ),
    };
    let finding = Finding::of_project(Code::Unsigned, message, next);
    Some(finding.warn_for(WarnReason::SignerUnknown))
}

/// Whether any of the keys made the signature. Only prehashed signatures count, the kind that
/// minisign makes since 0.10.
fn verified(keys: &[String], bytes: &[u8], signature: &str) -> Result<(), String> {
    let signature =
        Signature::decode(signature).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut why = "no key could be read".to_owned();
    for key in keys
        .iter()
        .filter_map(|key| PublicKey::from_base64(key).ok())
    {
        match key.verify(bytes, &signature, false) {
            Ok(()) => return Ok(()),
            // That a named key rejects it says more than that another key did not make it.
            Err(Refusal::UnexpectedKeyId) if why.starts_with("no key") => {
                why = "it was made with a key that `trust.public_keys` does not name".to_owned();
            }
            Err(Refusal::UnexpectedKeyId) => {}
            Err(Refusal::UnexpectedAlgorithm) => {
                why = "it has the old form, over the file and not its hash; sign again with minisign 0.10 or later".to_owned();
            }
            Err(_) => why = "the lock was changed after it was signed".to_owned(),
        }
    }
    Err(why)
}

/// A secret key of minisign, opened.
pub struct Signer {
    secret: minisign::SecretKey,
    public: minisign::PublicKey,
}

impl Signer {
    /// Opens a key file. The password is taken from [`PASSWORD_VARIABLE`], or asked for on the
    /// terminal.
    ///
    /// # Errors
    /// [`Error::Usage`], [`Error::Io`] and [`Error::Input`].
    pub fn open(path: &Path) -> Result<Signer, Error> {
        let refused = |cause: String| Error::input(path.to_owned(), cause);
        let text = read_text_up_to(path, most::CONFIG).map_err(Error::named(path))?;
        if PublicKey::decode(&text).is_ok() {
            let cause = "it is a public key of minisign: name the file of the secret key, as `minisign -G -s FILE` made it";
            return Err(refused(cause.to_owned()));
        }
        let read = || minisign::SecretKeyBox::from(text.clone());
        // The key file itself says whether it has a password.
        let secret = match read().into_unencrypted_secret_key() {
            Ok(secret) => secret,
            Err(error) if !error.to_string().contains("encrypted") => {
                let cause = "not a minisign secret key, which `minisign -G -s FILE` makes";
                return Err(refused(format!("{cause}: {error}")));
            }
            Err(_) => {
                let password = std::env::var(PASSWORD_VARIABLE).ok();
                read().into_secret_key(password).map_err(|error| {
                    refused(format!(
                        "not a minisign secret key, or it cannot be opened: {error}; give its password on a terminal or in {PASSWORD_VARIABLE}"
                    ))
                })?
            }
        };
        let public = minisign::PublicKey::from_secret_key(&secret)
            .map_err(|error| refused(error.to_string()))?;
        Ok(Signer { secret, public })
    }

    /// The public key, as in `trust.public_keys`.
    pub fn public_key(&self) -> String {
        self.public.to_base64()
    }

    /// The signature of a lock. Its trusted comment says for which variant and GPU it was made.
    ///
    /// # Errors
    /// [`Error::Baseline`].
    pub fn sign(&self, gpu: &str, variant: &VariantId, lock: &str) -> Result<String, Error> {
        let signed = minisign::sign(
            Some(&self.public),
            &self.secret,
            Cursor::new(lock.as_bytes()),
            Some(&format!("sparsek-gate lock of {variant} on {gpu}")),
            Some("signature from sparsek-gate"),
        );
        signed
            .map(|signature| signature.into_string())
            .map_err(|error| {
                Error::Baseline(format!("the lock of {variant} cannot be signed: {error}"))
            })
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.public_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        let minisign::KeyPair { pk, sk } =
            minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        Signer {
            secret: sk,
            public: pk,
        }
    }

    fn id() -> VariantId {
        VariantId::try_from("s/v".to_owned()).unwrap()
    }

    fn signed(signer: &Signer, text: &str) -> String {
        signer.sign("gpu", &id(), text).unwrap()
    }

    fn stored(lock: &str, signature: Option<String>) -> Stored {
        Stored {
            gpu: "gpu".to_owned(),
            variant: id(),
            lock: Some(lock.to_owned()),
            norm: None,
            norm_sha256: None,
            profile: None,
            signature,
        }
    }

    fn trust(keys: &[&Signer]) -> Trust {
        Trust {
            public_keys: keys.iter().map(|key| key.public_key()).collect(),
            ..Trust::default()
        }
    }

    fn code(trust: &Trust, lock: &str, signature: Option<String>) -> Option<Code> {
        unsigned(trust, &stored(lock, signature)).map(|finding| finding.code)
    }

    #[test]
    fn a_lock_is_valid_by_any_named_key_and_by_no_other() {
        let (ada, eve) = (signer(), signer());
        let of = |signer: &Signer, text: &str| Some(signed(signer, text));
        let both = trust(&[&eve, &ada]);
        let only_ada = trust(&[&ada]);
        assert_eq!(code(&both, "lock", of(&ada, "lock")), None);
        assert_eq!(code(&only_ada, "lock", of(&ada, "lock")), None);
        let nonsense = Some("nonsense".to_owned());
        for wrong in [of(&eve, "lock"), of(&ada, "other"), nonsense] {
            assert_eq!(code(&only_ada, "lock", wrong), Some(Code::Tampered));
        }
    }

    #[test]
    fn a_missing_signature_is_refused_only_where_keys_are_named() {
        let ada = signer();
        assert_eq!(code(&trust(&[&ada]), "lock", None), Some(Code::Unsigned));
        assert_eq!(code(&trust(&[]), "lock", None), None);
    }

    #[test]
    fn a_signature_that_no_key_verifies_warns() {
        let of_ada = signed(&signer(), "lock");
        for (signature, text) in [
            ("nonsense", "is not a signature of minisign"),
            ("", "is not a signature of minisign"),
            (&of_ada, "is not verified"),
        ] {
            let stored = stored("lock", Some(signature.to_owned()));
            let finding = unsigned(&trust(&[]), &stored).unwrap();
            assert_eq!(finding.code, Code::Unsigned);
            assert!(!finding.denies());
            assert!(finding.message.contains(text), "{}", finding.message);
        }
        assert_eq!(code(&trust(&[]), "lock", None), None);
    }
}
