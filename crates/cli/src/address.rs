//! The database that a user named.

use crate::suggestion;
use isolde_drivers::TARGETS;
use isolde_harness::Address;

/// Reads the address of a database that can be driven.
pub(crate) fn of(text: &str) -> Result<Address, String> {
    let address = isolde_drivers::address(text)?;
    let scheme = address.scheme.as_str();
    if TARGETS.iter().any(|target| target.schemes.contains(&scheme)) {
        return Ok(address);
    }
    let names: Vec<&str> = TARGETS.iter().map(|target| target.schemes[0]).collect();
    Err(suggestion::expected("a database that can be driven", scheme, &names))
}
